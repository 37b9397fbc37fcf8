"""Fitting a scale: the border lies between related and unrelated, and nonsense is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing.errors import InvalidArgument
from homing.models.calibrate import MAX_STEEPNESS, fit_scale


def cosines(mean: float, spread: float, count: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.clip(np.random.default_rng(seed).normal(mean, spread, count), -1, 1)


def test_the_border_of_two_alike_bells_lies_half_way_and_the_slope_is_theirs() -> None:
    scale = fit_scale(cosines(0.6, 0.1, 20_000), cosines(0.2, 0.1, 20_000, seed=1))
    assert scale.border == pytest.approx(0.4, abs=0.01)
    # For two normal distributions the log odds are linear: slope = distance of the means / variance.
    assert scale.steepness == pytest.approx(0.4 / 0.01, rel=0.1)


def test_many_unrelated_pairs_do_not_outvote_few_related_ones() -> None:
    few = fit_scale(cosines(0.6, 0.15, 5_000), cosines(0.1, 0.15, 5_000, seed=1))
    many = fit_scale(cosines(0.6, 0.15, 5_000), cosines(0.1, 0.15, 100_000, seed=1))
    assert many.border == pytest.approx(few.border, abs=0.01)


def test_scores_of_the_two_kinds_fall_on_their_sides() -> None:
    near, far = cosines(0.55, 0.12, 500), cosines(0.1, 0.1, 500, seed=1)
    scale = fit_scale(near, far)
    assert np.mean([scale.score(cosine) > 0.5 for cosine in near]) > 0.9
    assert np.mean([scale.score(cosine) < 0.5 for cosine in far]) > 0.9


def test_kinds_that_do_not_overlap_still_have_a_finite_scale() -> None:
    scale = fit_scale(cosines(0.9, 0.01, 100), cosines(0.1, 0.01, 100, seed=1))
    assert 0.1 < scale.border < 0.9
    assert 0 < scale.steepness <= MAX_STEEPNESS


@settings(max_examples=50, deadline=None)
@given(st.floats(-0.2, 0.5), st.floats(0.1, 0.5), st.floats(0.03, 0.25), st.integers(0, 1000))
def test_the_border_lies_between_the_means(low: float, gap: float, spread: float, seed: int) -> None:
    near, far = cosines(low + gap, spread, 400, seed), cosines(low, spread, 400, seed + 1)
    if near.mean() - far.mean() > 0.05:
        assert far.mean() < fit_scale(near, far).border < near.mean()


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="too few"):
        fit_scale([0.9, 0.8], cosines(0.1, 0.1, 100))


def test_pairs_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="no closer"):
        fit_scale(cosines(0.1, 0.1, 100), cosines(0.6, 0.1, 100))


def test_what_is_no_cosine_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"\[-1, 1\]"):
        fit_scale([3.0] * 50, cosines(0.1, 0.1, 100))
