"""The two directions a map is drawn in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing.server.routes.map import Projection, sample
from homing.vectors import Matrix


def clouds(width: int = 64, each: int = 20) -> Matrix:
    """Three clouds of vectors, far from each other."""
    random = np.random.default_rng(7)
    centres = 5 * np.eye(width)[:3]
    return np.concatenate([centre + random.normal(0, 0.1, (each, width)) for centre in centres]).astype(np.float32)


def test_what_lies_together_lies_together_on_the_map() -> None:
    rows = clouds()
    places = Projection.of(rows).place(rows).reshape(3, 20, 2)
    centres = places.mean(axis=1)
    within = max(
        float(np.linalg.norm(cloud - centre, axis=1).max()) for cloud, centre in zip(places, centres, strict=True)
    )
    between = min(float(np.linalg.norm(centres[a] - centres[b])) for a, b in ((0, 1), (0, 2), (1, 2)))
    assert between > 5 * within


def test_three_clouds_are_shown_nearly_whole_and_noise_hardly() -> None:
    assert Projection.of(clouds()).shown > 0.9
    noise = np.random.default_rng(1).normal(size=(500, 200)).astype(np.float32)
    assert Projection.of(noise).shown < 0.05


def test_the_same_vectors_give_the_same_map_in_any_order() -> None:
    rows = clouds()
    first = Projection.of(rows).place(rows)
    again = Projection.of(rows[::-1].copy()).place(rows)
    assert np.allclose(first, again, atol=1e-6)
    assert np.array_equal(first, Projection.of(rows).place(rows))


def test_fewer_rows_than_dimensions_and_more_agree() -> None:
    rows = clouds(width=8, each=2)
    wide = np.concatenate([rows, np.zeros((6, 40), dtype=np.float32)], axis=1)
    assert np.allclose(np.abs(Projection.of(rows).place(rows)), np.abs(Projection.of(wide).place(wide)), atol=1e-5)


@pytest.mark.parametrize("count", [0, 1])
def test_what_does_not_differ_lies_in_the_middle(count: int) -> None:
    rows = np.ones((count, 5), dtype=np.float32)
    projection = Projection.of(rows)
    assert projection.shown == 0.0
    assert projection.place(rows).tolist() == [[0.0, 0.0]] * count


def test_equal_vectors_lie_in_the_middle() -> None:
    rows = np.ones((4, 5), dtype=np.float32)
    assert np.allclose(Projection.of(rows).place(rows), 0.0)


def test_two_vectors_lie_on_a_line() -> None:
    rows = np.eye(3, dtype=np.float32)[:2]
    projection = Projection.of(rows)
    places = projection.place(rows)
    assert np.allclose(np.abs(places[:, 0]), 1.0)
    assert np.allclose(places[:, 1], 0.0)
    assert projection.shown == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_fitted_vectors_lie_within_the_paper(count: int, width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    projection = Projection.of(rows)
    assert np.abs(projection.place(rows)).max() <= 1 + 1e-9
    assert 0.0 <= projection.shown <= 1 + 1e-9


@given(st.integers(0, 5_000), st.integers(1, 300))
def test_a_sample_is_even_and_bounded(size: int, limit: int) -> None:
    chosen = list(sample(size, limit))
    assert len(chosen) == min(size, limit)
    assert len(set(chosen)) == len(chosen)
    assert all(0 <= one < size for one in chosen)
