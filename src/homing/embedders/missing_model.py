"""Stands in for a model that is not there, until it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.errors import ModelNotReady, NotFound
from homing.vectors import Matrix, Scale


class MissingModel:
    """A provider whose files are missing: asking it for anything raises ModelNotReady, which says what to do.

    It looks for the model each time, so whoever keeps it need not be restarted once the model was fetched.
    """

    def __init__(self, find: Callable[[str], EmbeddingProvider]) -> None:
        self._find = find

    @property
    def id(self) -> str:
        """The identity of the model, where it is there by now."""
        return self.for_model("").id

    @property
    def dimensions(self) -> int:
        """Its width, likewise."""
        return self.for_model("").dimensions

    @property
    def scale(self) -> Scale | None:
        """Its scale, likewise."""
        return self.for_model("").scale

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """What the model gives, likewise."""
        return self.for_model("").embed(texts, kind=kind)

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """What the model says, likewise."""
        return self.for_model("").truncated(texts)

    def for_model(self, identity: str) -> EmbeddingProvider:
        """The embedder of that identity; for an empty one, the default as it is now."""
        try:
            return self._find(identity)
        except NotFound as error:
            raise ModelNotReady(error.message, details=error.details) from error
