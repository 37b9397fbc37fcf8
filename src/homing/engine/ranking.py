"""How the legs become one order, in two ways; pure.

Reciprocal rank fusion (`rrf`) knows places only. The default (`rank`) knows how near each candidate is: its cosine,
brought nearer to 1 by the words that it shares with the query.

    distance = (1 - cosine) · exp(-LIFT · evidence)

`evidence` is BM25 in units of a word that a single text holds. So a text that shares no word keeps its cosine, each
word that it does share brings it nearer, and no hit depends on another. A text that waits for its vector is ranked by
how much of the query's mass it covers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homing.errors import InvalidArgument
from homing.stores.store import Measured, Words

DEFAULT_K = 60
"""How little the first places of a ranking stand out; the value of the original paper."""

LIFT = 0.5
"""How much a shared rare word shortens the distance; measured, see bench/skills.py."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ids one leg returned, best first, and how much that leg counts."""

    name: str
    ids: Sequence[str]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fused:
    """An id with its fused score, and per ranking its place (from 1) and what that place contributed."""

    id: str
    score: float
    ranks: Mapping[str, int]
    shares: Mapping[str, float]


def rrf(rankings: Sequence[Ranking], *, k: int = DEFAULT_K) -> list[Fused]:
    """Fuse rankings by `sum(weight / (k + rank))`, ranks from 1, best first, ties broken by id.

    An id that one ranking names twice counts once, at its better place. Weights need not add up to 1.
    """
    if k < 0:
        raise InvalidArgument(f"rrf k must not be negative; got {k}")
    ranks: dict[str, dict[str, int]] = {}
    shares: dict[str, dict[str, float]] = {}
    for ranking in rankings:
        for rank, item in enumerate(dict.fromkeys(ranking.ids), start=1):
            ranks.setdefault(item, {})[ranking.name] = rank
            shares.setdefault(item, {})[ranking.name] = ranking.weight / (k + rank)
    fused = [Fused(item, sum(shares[item].values()), ranks[item], shares[item]) for item in ranks]
    return sorted(fused, key=lambda one: (-one.score, one.id))


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
