"""One question is embedded once, however many collections it is put to at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from homing.embedders.provider import EmbeddingProvider, Kind, Wrapper
from homing.engine.models import ModelsInUse
from homing.errors import EmbeddingError
from homing.vectors import Matrix


class EmbedOnce:
    """The models in use for the length of one question: the first to ask embeds, the others wait and get the same.

    A failure is shared as well, so that a model that is down costs its deadline once. Collections that another model
    serves are asked with that one, once as well.
    """

    def __init__(self, models: ModelsInUse) -> None:
        self._models = models
        self._lock = Lock()
        self._providers: dict[str, EmbeddingProvider] = {}

    @property
    def embeds(self) -> bool:
        """Whether texts are embedded at all."""
        return self._models.embeds

    def provider(self, identity: str = "") -> EmbeddingProvider:
        """What makes vectors of this identity, asked once."""
        made = self._models.provider(identity)
        with self._lock:
            return self._providers.setdefault(made.id, _Once(made))


class _Once(Wrapper):
    """A provider that remembers what it answered, a failure included."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
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
