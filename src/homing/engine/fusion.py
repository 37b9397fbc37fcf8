"""Weighted reciprocal rank fusion: several rankings of the same things become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homing.errors import InvalidArgument

DEFAULT_K = 60
"""How little the first places of a ranking stand out; the value of the original paper."""


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
