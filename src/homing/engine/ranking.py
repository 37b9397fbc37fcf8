"""How near each candidate is: its cosine, brought nearer to 1 by the words that it shares with the query. Pure.

    distance = (1 - cosine) · exp(-LIFT · evidence)

`evidence` is BM25 in units of a word that a single text holds. So a text that shares no word keeps its cosine, each
word that it does share brings it nearer, and no hit depends on another. A text that waits for its vector is ranked by
how much of the query's mass it covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from homing.stores.store import Measured

LIFT = 0.5
"""How much a shared rare word shortens the distance; measured, see bench/skills.py."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its similarity in [-1, 1]; without a cosine, the share of the query that it covers."""

    id: str
    similarity: float
    cosine: float | None
    bm25: float

    @property
    def by_words(self) -> float:
        """What the words brought to the similarity."""
        return self.similarity - (self.cosine or 0.0)


def rank(candidates: Sequence[Measured], *, mass: float, rarest: float) -> list[Ranked]:
    """The candidates, the nearest first; ties by id."""
    ranked = [Ranked(one.id, _similarity(one, mass, rarest), one.cosine, one.bm25) for one in candidates]
    return sorted(ranked, key=lambda one: (-one.similarity, one.id))


def _similarity(one: Measured, mass: float, rarest: float) -> float:
    if one.cosine is None:
        return one.bm25 / mass if mass > 0 else 0.0
    evidence = one.bm25 / rarest if rarest > 0 else 0.0
    return 1 - (1 - one.cosine) * math.exp(-LIFT * evidence)
