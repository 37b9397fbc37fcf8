"""Which model embeds: the seam between the engine and whoever knows the models."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from homing.embedders.provider import EmbeddingProvider, provider_for
from homing.errors import ProviderUnavailable


@runtime_checkable
class ModelsInUse(Protocol):
    """Knows the default model and those that made the vectors which are there already. Safe from several threads."""

    @property
    def embeds(self) -> bool:
        """Whether texts are to be embedded at all; asking makes no model."""

    def provider(self, identity: str = "") -> EmbeddingProvider:
        """What makes vectors of this identity; for an empty one, the default as it is now. Raises EmbeddingError."""


class FixedModel:
    """One model for everything, or none."""

    def __init__(self, embedder: EmbeddingProvider | None) -> None:
        self._embedder = embedder

    @property
    def embeds(self) -> bool:
        """Whether there is a model."""
        return self._embedder is not None

    def provider(self, identity: str = "") -> EmbeddingProvider:
        """The model, whatever was asked for; one that knows others is asked for the right one."""
        if self._embedder is None:
            raise ProviderUnavailable("no embedding model is configured; set embedding.provider or search by keywords")
        return provider_for(self._embedder, identity)


def as_models(given: EmbeddingProvider | ModelsInUse | None) -> ModelsInUse:
    """The models behind what a caller gave: one embedder, several, or none."""
    return given if isinstance(given, ModelsInUse) else FixedModel(given)
