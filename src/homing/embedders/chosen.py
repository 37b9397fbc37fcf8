"""One model now, and the way to any other: what lets a collection keep its model while the default moves on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.vectors import Matrix, Scale


@runtime_checkable
class ChoosesModel(Protocol):
    """An embedder that can be asked for the model of another identity."""

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The embedder of that identity; for an empty one, the default as it is now. Raises EmbeddingError."""


def provider_for(embedder: EmbeddingProvider, identity: str) -> EmbeddingProvider:
    """The embedder whose vectors belong with those of `identity`, which is empty where there are none yet.

    Whoever keeps an embedder asks this before each piece of work, and takes vectors and `id` from what it returns: the
    default may change between two calls. An embedder that cannot choose is returned as it is.
    """
    return embedder.for_model(identity) if isinstance(embedder, ChoosesModel) else embedder


class Chosen:
    """An embedder that stays what it was when it was chosen, and knows where the others are."""

    def __init__(self, provider: EmbeddingProvider, choose: Callable[[str], EmbeddingProvider]) -> None:
        self._provider = provider
        self._choose = choose

    @property
    def id(self) -> str:
        """The identity of the chosen model."""
        return self._provider.id

    @property
    def dimensions(self) -> int:
        """The width of the chosen model."""
        return self._provider.dimensions

    @property
    def scale(self) -> Scale | None:
        """The scale of the chosen model."""
        return self._provider.scale

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """The vectors of the chosen model."""
        return self._provider.embed(texts, kind=kind)

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """What the chosen model says."""
        return self._provider.truncated(texts)

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The embedder of that identity; for an empty one, the default as it is now."""
        return self._provider if identity == self._provider.id else self._choose(identity)

    def close(self) -> None:
        """Closes the chosen model's provider where it can be closed."""
        if close := getattr(self._provider, "close", None):
            close()
