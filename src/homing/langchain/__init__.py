"""Hybrid search as a LangChain retriever: one user's rows of a store or a table, by meaning and by keyword.

    retriever = HybridRetriever(store, user_id=1, embeddings=app.embedder)
    retriever.invoke("怎么申请退款")

`store` is any of Homing's, or langchain-postgres' `PGVectorStore`. Needs the extra `langchain`.
"""

from __future__ import annotations

from homing.langchain.documents import merge_results_with_rrf
from homing.langchain.embeddings import HomingEmbeddings
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.retriever import HybridRetriever
from homing.langchain.table import prepare_table
from homing.text.keywords import extract_keywords

__all__ = [
    "HomingEmbeddings",
    "HybridRetriever",
    "HybridRetrieverOptions",
    "extract_keywords",
    "merge_results_with_rrf",
    "prepare_table",
]
