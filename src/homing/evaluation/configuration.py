"""How a search is made: what an evaluation compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from homing.engine.ranking import DEFAULT_K
from homing.engine.search import HybridOptions
from homing.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Configuration:
    """Which legs answer, and how they become one order; a weight of 0 leaves a leg out.

    Between two legs, weights and `rrf_k` are those of `fusion="rrf"`; `fusion="evidence"`, which searches use unless
    the settings say otherwise, takes no weights. `min_score` leaves out semantic matches that score less, as a search
    does.
    """

    vector_weight: float = 0.7
    keyword_weight: float = 0.3
    rrf_k: int = DEFAULT_K
    min_score: float | None = None
    fusion: Literal["evidence", "rrf"] = "rrf"

    def __post_init__(self) -> None:
        if self.vector_weight < 0 or self.keyword_weight < 0 or not (self.vector_weight or self.keyword_weight):
            raise InvalidArgument("weights are not negative, and one of them is more than 0")
        if self.rrf_k < 0:
            raise InvalidArgument(f"the k of a fusion is not negative; got {self.rrf_k}")

    @property
    def mode(self) -> Literal["semantic", "keyword", "hybrid"]:
        """Which legs have a say."""
        if not self.keyword_weight:
            return "semantic"
        return "hybrid" if self.vector_weight else "keyword"

    @property
    def name(self) -> str:
        """What a table calls it."""
        if not self.keyword_weight:
            return "vector"
        if not self.vector_weight:
            return "keyword"
        if self.fusion == "evidence":
            return "hybrid evidence"
        return f"hybrid {self.vector_weight:g}/{self.keyword_weight:g} k={self.rrf_k}"

    def options(self, limit: int, deadline: float) -> HybridOptions:
        """The options of a search that is made this way."""
        return HybridOptions(
            limit=limit,
            mode=self.mode,
            min_score=self.min_score,
            fusion=self.fusion,
            vector_weight=self.vector_weight,
            keyword_weight=self.keyword_weight,
            rrf_k=self.rrf_k,
            deadline=deadline,
        )


def sweep(step: float = 0.1, *, rrf_k: int = DEFAULT_K, min_score: float | None = None) -> list[Configuration]:
    """Weights from all vector to all keyword."""
    parts = round(1 / step)
    return [Configuration(round(1 - n * step, 3), round(n * step, 3), rrf_k, min_score) for n in range(parts + 1)]
