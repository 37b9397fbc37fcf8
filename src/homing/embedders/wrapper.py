"""What every wrapper around a provider passes through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.vectors import Matrix, Scale


class Wrapper:
    """A provider that is another one in everything it does not say otherwise."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider

    @property
    def wrapped(self) -> EmbeddingProvider:
        """The provider inside."""
        return self._provider

    @property
    def id(self) -> str:
        """The identity of the wrapped provider."""
        return self._provider.id

    @property
    def dimensions(self) -> int:
        """The width of the wrapped provider."""
        return self._provider.dimensions

    @property
    def scale(self) -> Scale | None:
        """The scale of the wrapped provider."""
        return self._provider.scale

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


def layers(provider: EmbeddingProvider) -> Iterator[EmbeddingProvider]:
    """A provider, what it wraps, what that wraps, and so on."""
    yield provider
    while isinstance(provider, Wrapper):
        provider = provider.wrapped
        yield provider
