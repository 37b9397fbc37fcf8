"""How good a ranking is, given what is relevant. Pure; every figure lies between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def recall(ranking: Sequence[str], relevant: Mapping[str, float], k: int) -> float:
    """The share of questions answered: 1 where at least one relevant document is among the first `k`."""
    return float(any(relevant.get(one, 0) > 0 for one in ranking[:k]))


def ndcg(ranking: Sequence[str], relevant: Mapping[str, float], k: int = 10) -> float:
    """Gain of the first `k`, discounted by the logarithm of the place, over the best possible."""
    gained = sum(relevant.get(one, 0.0) / math.log2(place + 2) for place, one in enumerate(ranking[:k]))
    best = sum(gain / math.log2(place + 2) for place, gain in enumerate(sorted(relevant.values(), reverse=True)[:k]))
    return gained / best if best else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, float]) -> float:
    """One over the place of the first relevant document; 0 where there is none."""
    return next((1 / place for place, one in enumerate(ranking, start=1) if relevant.get(one, 0) > 0), 0.0)
