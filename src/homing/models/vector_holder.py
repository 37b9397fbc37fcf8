"""What a change of the model has to know about whoever keeps vectors without being a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from homing.embedders.provider import EmbeddingProvider
from homing.stores.store import ModelInfo


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """The models of one collection; the first serves it."""

    collection: str
    records: int
    models: tuple[ModelInfo, ...]


class HoldsVectors(Protocol):
    """Something beside the stores that keeps the vectors of texts, such as the table of skills."""

    def vectors_held(self) -> CollectionStatus | None:
        """How many vectors there are, and of which model; None where there are none."""

    def bring_over(self, target: EmbeddingProvider, embedded: Callable[[int], None]) -> None:
        """Embed everything with this model, then let its vectors answer, in one step.

        `embedded` is called with how many texts were embedded since the last time. It may raise, and so may the model:
        nothing is changed then.
        """
