"""One model now, and the way to any other: what lets a collection keep its model while the default moves on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from homing.embedders.provider import EmbeddingProvider
from homing.embedders.wrapper import Wrapper


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


class Chosen(Wrapper):
    """An embedder that stays what it was when it was chosen, and knows where the others are."""

    def __init__(self, provider: EmbeddingProvider, choose: Callable[[str], EmbeddingProvider]) -> None:
        super().__init__(provider)
        self._choose = choose

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The embedder of that identity; for an empty one, the default as it is now."""
        return self._provider if identity == self._provider.id else self._choose(identity)
