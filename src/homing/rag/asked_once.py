"""One question is embedded once, however many collections it is put to at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from homing.embedders.chosen import provider_for
from homing.embedders.provider import EmbeddingProvider, Kind
from homing.embedders.wrapper import Wrapper
from homing.errors import EmbeddingError
from homing.vectors import Matrix


class AskedOnce(Wrapper):
    """Wraps a provider for the length of one question: the first to ask embeds, the others wait and get the same.

    A failure is shared as well, so that a provider that is down costs its deadline once. Collections of another model
    are asked with that one, once as well.
    """

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
        self._others: dict[str, AskedOnce] = {}
        self._lock = Lock()
        self._answers: dict[tuple[Kind, tuple[str, ...]], Matrix | EmbeddingError] = {}

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """The provider's rows, asked for once."""
        key = (kind, tuple(texts))
        with self._lock:
            if key not in self._answers:
                try:
                    self._answers[key] = self._provider.embed(texts, kind=kind)
                except EmbeddingError as error:
                    self._answers[key] = error
        answer = self._answers[key]
        if isinstance(answer, EmbeddingError):
            raise answer
        return answer

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The provider of that identity, asked once."""
        provider = provider_for(self._provider, identity)
        with self._lock:
            return self if provider.id == self.id else self._others.setdefault(provider.id, AskedOnce(provider))
