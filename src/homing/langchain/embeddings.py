"""Our embedders as LangChain knows them, and LangChain's as the engine asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.embeddings import Embeddings

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.errors import InvalidArgument
from homing.frameworks import ForeignModel
from homing.vectors import Matrix, Scale, normalise

OF_RETRIEVER = "a retriever embeds its queries: give it embeddings="
OF_VECTOR_STORE = "a vector store embeds its texts: give it embedding="


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


class FromLangChain:
    """LangChain `Embeddings` as an `EmbeddingProvider` that embeds queries.

    Nothing is known of the model but its vectors: it has no identity, and no width before it has embedded.
    """

    id = ""
    dimensions = 0

    def __init__(self, embeddings: Any) -> None:
        self._embeddings = embeddings

    @property
    def scale(self) -> Scale | None:
        """How a cosine reads as a similarity, where the embeddings say so."""
        return getattr(self._embeddings, "scale", None)

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text. Raises what the embeddings raise."""
        return normalise([self._embeddings.embed_query(text) for text in texts])

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """Nobody knows."""
        return [False] * len(texts)


def provider_of(embeddings: Any, wanted: str = OF_RETRIEVER) -> EmbeddingProvider:
    """What embeds a query: one of ours, or anything with LangChain's `embed_query`. `wanted` begins the refusal."""
    if isinstance(embeddings, HomingEmbeddings):
        return embeddings.provider
    if isinstance(embeddings, EmbeddingProvider):
        return embeddings
    if callable(getattr(embeddings, "embed_query", None)):
        return FromLangChain(embeddings)
    raise InvalidArgument(
        f"{wanted}, an EmbeddingProvider (homing.open(…).embedder) or LangChain Embeddings; "
        f"got {type(embeddings).__name__}"
    )


def model_of(embeddings: Any) -> EmbeddingProvider:
    """What embeds the texts of a vector store: one of ours, or LangChain `Embeddings`, named by class and model."""
    provider = provider_of(embeddings, OF_VECTOR_STORE)
    if not isinstance(provider, FromLangChain):
        return provider
    names = (getattr(embeddings, "model", None), getattr(embeddings, "model_name", None), type(embeddings).__name__)
    name = next(one for one in names if isinstance(one, str) and one)
    model = ForeignModel(f"langchain/{name}", embeddings.embed_documents, embeddings.embed_query)
    model.scale = provider.scale
    return model
