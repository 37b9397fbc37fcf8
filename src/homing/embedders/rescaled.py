"""A provider whose scores read on a scale that was fitted later than the model."""

from __future__ import annotations

from collections.abc import Sequence

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.vectors import Matrix, Scale


class Rescaled:
    """The same provider, identity and vectors, with another scale."""

    def __init__(self, provider: EmbeddingProvider, scale: Scale) -> None:
        self._provider = provider
        self._scale = scale

    @property
    def id(self) -> str:
        """The identity of the wrapped provider."""
        return self._provider.id

    @property
    def dimensions(self) -> int:
        """The width of the wrapped provider."""
        return self._provider.dimensions

    @property
    def scale(self) -> Scale:
        """The scale that was fitted."""
        return self._scale

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """What the wrapped provider gives."""
        return self._provider.embed(texts, kind=kind)

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """What the wrapped provider says."""
        return self._provider.truncated(texts)

    def close(self) -> None:
        """Closes the wrapped provider where it can be closed."""
        if close := getattr(self._provider, "close", None):
            close()
