"""langchain-core, the one library this package stands on; where it is missing, the extra that brings it is named."""

from __future__ import annotations

from homing.errors import MissingExtra

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
except ModuleNotFoundError as error:
    raise MissingExtra(
        "a LangChain retriever needs langchain-core; run: pip install 'homing[langchain]'",
        details={"extra": "langchain"},
    ) from error

__all__ = [
    "AsyncCallbackManagerForRetrieverRun",
    "BaseRetriever",
    "CallbackManagerForRetrieverRun",
    "Document",
    "Embeddings",
]
