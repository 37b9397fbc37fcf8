"""Vectors: what is refused, what normalising promises, and the readable scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.errors import DimensionMismatch, InvalidArgument
from homing.vectors import Scale, as_vector, normalise, pack, score_of, unpack


def test_rows_have_unit_length_even_when_tiny_or_huge() -> None:
    rows = normalise([[3e-20, 4e-20], [3e18, 4e18]])
    assert rows.dtype == np.float32
    assert np.allclose(rows, [[0.6, 0.8], [0.6, 0.8]])


@pytest.mark.parametrize("width", [2, 3, 8, 384])
def test_normalising_again_changes_no_bit(width: int) -> None:
    rows = normalise(np.random.default_rng(width).standard_normal((2_000, width)))
    assert np.array_equal(normalise(rows), rows)


@pytest.mark.parametrize("row", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_a_row_without_direction_is_refused(row: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="no direction"):
        normalise([row])


def test_a_wrong_width_says_both_widths() -> None:
    with pytest.raises(DimensionMismatch, match="2 dimensions where 384") as caught:
        as_vector([1.0, 2.0], dimensions=384)
    assert caught.value.details == {"expected": 384, "actual": 2}


@pytest.mark.parametrize("shape", [[], [[1.0, 2.0]]])
def test_something_that_is_not_one_row_is_refused(shape: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="one row"):
        as_vector(shape)


def test_packing_keeps_every_bit() -> None:
    row = as_vector([0.1, -0.2, 0.3])
    assert np.array_equal(unpack(pack(row)), row)


def test_the_scale_gives_one_to_identity_and_about_a_half_to_its_border() -> None:
    scale = Scale(border=0.4, steepness=12)
    assert scale.score(1.0) == pytest.approx(1.0)
    assert scale.score(0.4) == pytest.approx(0.5, abs=0.001)
    assert scale.score(0.0) < 0.05


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(-0.5, 0.9), st.floats(1, 40))
def test_the_scale_never_changes_an_order(one: float, other: float, border: float, steepness: float) -> None:
    scale = Scale(border, steepness)
    if one + 1e-6 < other:
        assert scale.score(one) < scale.score(other)


@given(st.floats(-0.9, 1))
def test_the_cosine_of_a_score_is_the_cosine_it_came_from(cosine: float) -> None:
    scale = Scale(border=0.4, steepness=12)
    assert scale.cosine(scale.score(cosine)) == pytest.approx(cosine, abs=1e-4)


def test_without_a_scale_the_score_is_the_cosine() -> None:
    assert score_of(0.42, None) == 0.42
