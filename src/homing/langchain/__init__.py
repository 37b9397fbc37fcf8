"""LangChain on Homing: a vector store, hybrid retrievers of one user's rows, embeddings, and tools for agents.

    texts = HomingVectorStore()
    texts.add_texts(["收到货后七天内可以申请退款。"])
    texts.similarity_search("怎么申请退款")

    retriever = HybridRetriever(store, user_id=1, embeddings=app.embedder)

`store` is any of Homing's, or langchain-postgres' `PGVectorStore`. Needs the extra `langchain`.
"""

from __future__ import annotations

from homing.frameworks import missing

try:
    import langchain_core  # noqa: F401
except ModuleNotFoundError as error:
    raise missing("langchain-core", "langchain") from error

from homing.langchain.agents import SkillRetriever, agent_tools
from homing.langchain.embeddings import HomingEmbeddings
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.retriever import HybridRetriever, merge_results_with_rrf
from homing.langchain.table import prepare_table
from homing.langchain.vector_store import HomingVectorStore
from homing.text.keywords import extract_keywords

__all__ = [
    "HomingEmbeddings",
    "HomingVectorStore",
    "HybridRetriever",
    "HybridRetrieverOptions",
    "SkillRetriever",
    "agent_tools",
    "extract_keywords",
    "merge_results_with_rrf",
    "prepare_table",
]
