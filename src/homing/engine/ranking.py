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

from homing.stores.store import Measured, Words

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


def rank(candidates: Sequence[Measured], words: Words) -> list[Ranked]:
    """The candidates, the nearest first; ties by id. `words` says what the words of the query are worth."""
    ranked = [
        Ranked(one.id, similarity(one.cosine, *worth(one.bm25, words)), one.cosine, one.bm25) for one in candidates
    ]
    return sorted(ranked, key=lambda one: (-one.similarity, one.id))


def similarity(cosine: float | None, evidence: float, coverage: float) -> float:
    """How near something is by both measures; by words alone where it has no vector."""
    return coverage if cosine is None else 1 - (1 - cosine) * math.exp(-LIFT * evidence)


def worth(bm25: float, words: Words) -> tuple[float, float]:
    """The evidence of a BM25, and the share of the query's mass that it covers, in [0, 1)."""
    return (
        bm25 / words.rarest if words.rarest > 0 else 0.0,
        bm25 / words.mass if words.mass > 0 else 0.0,
    )
