"""Hybrid search as a LangChain retriever: one user's rows of a PostgreSQL table, by meaning and by keyword.

    retriever = HybridRetriever(vector_store, user_id=1)
    retriever.invoke("怎么申请退款")

`vector_store` is langchain-postgres' `PGVectorStore` or Homing's own `PostgresStore`. Needs the extra `langchain`.
"""

from __future__ import annotations

from homing.langchain.embeddings import HomingEmbeddings
from homing.langchain.merging import merge_results_with_rrf
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.retriever import HybridRetriever
from homing.langchain.table_setup import prepare_table
from homing.text.keywords import extract_keywords

__all__ = [
    "HomingEmbeddings",
    "HybridRetriever",
    "HybridRetrieverOptions",
    "extract_keywords",
    "merge_results_with_rrf",
    "prepare_table",
]
