"""Which hits of several collections are the best ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from homing.engine.fusion import Fused, Ranking, rrf
from homing.engine.search import HybridOptions
from homing.records import Hit, Leg, LegShare


def best(hits: Sequence[Hit], limit: int, weights: Mapping[str, float], hybrid: HybridOptions) -> list[Hit]:
    """The `limit` best of hits that were found collection by collection, each leg ranked again over all of them.

    Cosines are compared across collections, times the `weights` of these. Keyword scores are not: what is rare in one
    collection may be common in another. There the places count, and of two hits with one place the nearer comes first.
    """
    keyed = {f"{hit.collection}\0{hit.id}": hit for hit in hits}

    def ranking(leg: Leg, weight: float) -> Ranking:
        shares = {key: one for key, hit in keyed.items() for one in hit.legs if one.leg == leg}

        def place(key: str) -> tuple[float, float, str]:
            hit = keyed[key]
            by_weight = weights.get(hit.collection, 1.0)
            return -_worth(shares[key]) * by_weight, -(hit.cosine or 0.0) * by_weight, key

        return Ranking(leg, sorted(shares, key=place), weight)

    rankings = [ranking("vector", hybrid.vector_weight), ranking("keyword", hybrid.keyword_weight)]
    return [_placed(keyed[fused.id], fused) for fused in rrf(rankings, k=hybrid.rrf_k)[:limit]]


def _worth(share: LegShare) -> float:
    return share.raw if share.leg == "vector" else 1 / share.rank


def _placed(hit: Hit, fused: Fused) -> Hit:
    """The hit with its places among the hits of all collections."""
    legs = tuple(replace(one, rank=fused.ranks[one.leg], share=fused.shares[one.leg]) for one in hit.legs)
    return replace(hit, fused=fused.score, legs=legs)
