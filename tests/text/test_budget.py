"""The token estimate, and what fits into a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.errors import InvalidArgument
from homing.text.budget import Fit, estimate_tokens, fit


# How many tokens the bundled model's tokenizer makes of them.
@pytest.mark.parametrize(
    ("text", "actual"),
    [
        ("今天天气很好，我们去公园散步吧。", 16),
        ("The keeper lit the lamp and went up the long stairs to look at the sea.", 17),
        ("用 Python 3.11 写一个 HTTP 服务，监听 8080 端口。", 19),
    ],
)
def test_the_estimate_is_near_for_chinese_english_and_both(text: str, actual: int) -> None:
    assert estimate_tokens(text) == pytest.approx(actual, rel=0.15)


def test_nothing_costs_nothing() -> None:
    assert estimate_tokens("") == estimate_tokens(" \n\u3000") == 0


@given(st.text(max_size=80), st.text(max_size=80))
def test_two_texts_with_space_between_cost_no_more_than_both_and_no_less_than_one(one: str, other: str) -> None:
    both = estimate_tokens(f"{one} {other}")
    assert estimate_tokens(one) <= both <= estimate_tokens(one) + estimate_tokens(other)
    assert both <= len(one) + len(other)


def test_a_smaller_later_one_may_still_fit() -> None:
    assert fit([60, 50, 30, 20], 100) == Fit(kept=(0, 2), tokens=90, truncated=True)


def test_nothing_is_truncated_when_all_fit() -> None:
    assert fit([60, 40], 100) == Fit(kept=(0, 1), tokens=100, truncated=False)
    assert fit([], 0) == Fit(kept=(), tokens=0, truncated=False)


def test_a_budget_of_zero_keeps_nothing_and_says_so() -> None:
    assert fit([1], 0) == Fit(kept=(), tokens=0, truncated=True)


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        fit([1], -1)


@given(st.lists(st.integers(0, 100), max_size=20), st.integers(0, 300))
def test_the_budget_is_never_exceeded_and_nothing_that_fits_is_left_out(costs: list[int], budget: int) -> None:
    kept = fit(costs, budget)
    assert kept.tokens == sum(costs[i] for i in kept.kept) <= budget
    assert all(kept.tokens + cost > budget for i, cost in enumerate(costs) if i not in kept.kept)
    assert kept.truncated == (len(kept.kept) < len(costs))
