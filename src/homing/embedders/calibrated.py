"""A provider whose scores read on a scale that was fitted later than the model."""

from __future__ import annotations

from homing.embedders.provider import EmbeddingProvider
from homing.embedders.wrapper import Wrapper
from homing.vectors import Scale


class Calibrated(Wrapper):
    """The same provider, identity and vectors, with another scale."""

    def __init__(self, provider: EmbeddingProvider, scale: Scale) -> None:
        super().__init__(provider)
        self._scale = scale

    @property
    def scale(self) -> Scale:
        """The scale that was fitted."""
        return self._scale
