"""Many dimensions as two: where vectors lie on a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from homing.vectors import Matrix

Places = npt.NDArray[np.float64]
"""One row (x, y) for each vector."""


@dataclass(frozen=True, slots=True)
class Projection:
    """The two directions in which some vectors differ most (principal components).

    `shown` is the share of all their differences that these two directions show, in [0, 1]: what the map leaves out is
    as honest a part of it as what it draws. The same vectors give the same map on every call.
    """

    mean: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float64]
    reach: float
    shown: float

    @classmethod
    def of(cls, vectors: Matrix) -> Projection:
        """Fit to vectors, one row each; fewer than two have no differences, and all lie in the middle."""
        rows = np.asarray(vectors, dtype=np.float64)
        width = rows.shape[1]
        mean = rows.mean(axis=0) if len(rows) else np.zeros(width)
        apart = rows - mean
        values, axes = _principal(apart)
        everything = float((apart**2).sum())
        places = apart @ axes.T
        return cls(
            mean=mean,
            axes=axes,
            reach=float(np.abs(places).max(initial=0.0)) or 1.0,
            shown=float(values.sum() / everything) if everything > 1e-12 else 0.0,
        )

    def place(self, vectors: Matrix) -> Places:
        """Where vectors lie, the fitted ones within [-1, 1]; others may lie outside. Both axes have one scale."""
        rows = np.asarray(vectors, dtype=np.float64)
        placed: Places = (rows - self.mean) @ self.axes.T / self.reach
        return placed


def sample(size: int, limit: int) -> Sequence[int]:
    """Which of `size` rows to draw where only `limit` are: evenly spread, always the same ones."""
    if size <= limit:
        return range(size)
    return [at * size // limit for at in range(limit)]


def _principal(apart: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The two largest principal values and their directions; a direction that does not exist is zero."""
    count, width = apart.shape
    # The smaller of the two products has the same values, and a model's width may be in the thousands.
    if count < width:
        values, left = np.linalg.eigh(apart @ apart.T)
        directions = apart.T @ left
    else:
        values, directions = np.linalg.eigh(apart.T @ apart)
    values = values[::-1][:2]
    directions = directions[:, ::-1][:, :2].T
    axes = np.zeros((2, width))
    kept = np.zeros(2)
    for at, (value, direction) in enumerate(zip(values, directions, strict=True)):
        length = float(np.linalg.norm(direction))
        if value > 1e-12 and length > 1e-9:
            # An axis may point either way; the same way every time is what keeps a map recognisable.
            sign = 1.0 if direction[np.abs(direction).argmax()] > 0 else -1.0
            axes[at] = sign * direction / length
            kept[at] = value
    return kept, axes
