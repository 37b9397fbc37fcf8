"""Weighted reciprocal rank fusion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.engine.ranking import Ranking, rrf
from homing.errors import InvalidArgument


def test_a_score_is_the_sum_of_weight_over_k_plus_rank() -> None:
    fused = rrf([Ranking("vector", ["a", "b"], 0.7), Ranking("keyword", ["b"], 0.3)], k=60)
    assert [one.id for one in fused] == ["b", "a"]
    assert fused[0].score == pytest.approx(0.7 / 62 + 0.3 / 61)
    assert fused[1].score == pytest.approx(0.7 / 61)
    assert fused[0].ranks == {"vector": 2, "keyword": 1}
    assert fused[0].shares == {"vector": pytest.approx(0.7 / 62), "keyword": pytest.approx(0.3 / 61)}


def test_an_id_named_twice_by_one_ranking_counts_once_at_its_better_place() -> None:
    assert rrf([Ranking("vector", ["a", "b", "a"])]) == rrf([Ranking("vector", ["a", "b"])])


def test_ties_are_broken_by_id() -> None:
    fused = rrf([Ranking("one", ["z"]), Ranking("two", ["a"])])
    assert [one.id for one in fused] == ["a", "z"]


def test_no_rankings_and_empty_rankings_fuse_to_nothing() -> None:
    assert rrf([]) == []
    assert rrf([Ranking("vector", [])]) == []


def test_a_negative_k_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="k must not be negative"):
        rrf([], k=-1)


@given(st.lists(st.text(min_size=1), unique=True, max_size=30), st.floats(0.01, 10), st.integers(0, 100))
def test_one_ranking_keeps_its_order(ids: list[str], weight: float, k: int) -> None:
    assert [one.id for one in rrf([Ranking("only", ids, weight)], k=k)] == ids
