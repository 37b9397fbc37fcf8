"""Homing as parts of Haystack: a document store, embedders, and a hybrid retriever.

    store = HomingDocumentStore("library")
    store.write_documents([Document(content="收到货后七天内可以申请退款。")])
    HomingHybridRetriever(store).run(query="怎么申请退款")

Needs the extra `haystack`.
"""

from __future__ import annotations

from homing.frameworks import missing

try:
    import haystack  # noqa: F401
except ModuleNotFoundError as error:
    raise missing("haystack-ai", "haystack") from error

from homing.haystack.components import HomingDocumentEmbedder, HomingHybridRetriever, HomingTextEmbedder
from homing.haystack.document_store import HomingDocumentStore

__all__ = ["HomingDocumentEmbedder", "HomingDocumentStore", "HomingHybridRetriever", "HomingTextEmbedder"]
