"""Our embedders as LangChain knows them, and LangChain's as we ask them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.langchain.library import Embeddings
from homing.langchain.source import Asked
from homing.vectors import Scale


class HomingEmbeddings(Embeddings):
    """An `EmbeddingProvider` as LangChain `Embeddings`, for any vector store that takes those.

    Rows have unit length. The async methods run the same work in a thread. `scale` tells a retriever how a cosine of
    this model reads as a similarity.
    """

    def __init__(self, provider: EmbeddingProvider) -> None:
        if not isinstance(provider, EmbeddingProvider):
            raise InvalidArgument(
                f"HomingEmbeddings wraps an EmbeddingProvider; got {type(provider).__name__}. "
                "homing.open(…).embedder is one"
            )
        self.provider = provider

    def __repr__(self) -> str:
        return f"HomingEmbeddings({self.provider.id})"

    @property
    def scale(self) -> Scale | None:
        """How a cosine of this model reads as a similarity; None where nobody fitted one."""
        return self.provider.scale

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One row per text."""
        rows: list[list[float]] = self.provider.embed(texts, kind="document").tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """The row of a question; some models embed one differently from what answers it."""
        row: list[float] = self.provider.embed([text], kind="query")[0].tolist()
        return row


def checked_embeddings(embeddings: Any) -> EmbeddingProvider | Embeddings:
    """What can embed a query: one of ours, or anything with LangChain's `embed_query`."""
    if isinstance(embeddings, HomingEmbeddings):
        return embeddings.provider
    if isinstance(embeddings, EmbeddingProvider) or callable(getattr(embeddings, "embed_query", None)):
        return embeddings  # type: ignore[no-any-return]
    raise InvalidArgument(
        "a retriever embeds its queries: give it embeddings=, an EmbeddingProvider (homing.open(…).embedder) "
        f"or LangChain Embeddings; got {type(embeddings).__name__}"
    )


def ask(embeddings: EmbeddingProvider | Embeddings, query: str) -> Asked:
    """The vector of a query, with all that is known of the model that made it."""
    if isinstance(embeddings, EmbeddingProvider):
        return Asked(embeddings.embed([query], kind="query")[0], embeddings.scale, embeddings.id)
    vector: Sequence[float] = embeddings.embed_query(query)
    return Asked(vector, getattr(embeddings, "scale", None))
