"""Vectors as float32 rows: checking, normalising, packing, and the readable scale of a cosine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from homing.errors import DimensionMismatch, InvalidArgument

Vector = npt.NDArray[np.float32]
"""One row: shape (d,)."""
Matrix = npt.NDArray[np.float32]
"""Many rows: shape (n, d)."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps a model's raw cosine to a score people can read: 0.5 at the border, 1 for identity.

    `border` is the cosine at which the model is as likely to see a related pair as an unrelated one; `steepness` is
    how fast it makes up its mind. The map is strictly increasing, so no order ever changes.
    """

    border: float
    steepness: float

    def score(self, cosine: float) -> float:
        """The readable score of a cosine."""
        return _sigmoid(self.steepness * (cosine - self.border)) / _sigmoid(self.steepness * (1 - self.border))

    def cosine(self, score: float) -> float:
        """The cosine that has this score: the inverse of `score`, within [-1, 1]."""
        share = score * _sigmoid(self.steepness * (1 - self.border))
        if share <= 0:
            return -1.0
        if share >= 1:
            return 1.0
        return max(-1.0, min(1.0, self.border + math.log(share / (1 - share)) / self.steepness))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def score_of(cosine: float, scale: Scale | None) -> float:
    """The score of a cosine under a model's scale; without one, the cosine itself."""
    return cosine if scale is None else scale.score(cosine)


def as_vector(values: Sequence[float] | Vector, *, dimensions: int | None = None) -> Vector:
    """One unit-length float32 row. Refuses NaN, infinity, zero length and a wrong width."""
    row = np.asarray(values, dtype=np.float32)
    if row.ndim != 1 or row.size == 0:
        raise InvalidArgument(f"a vector is one row of numbers; got shape {row.shape}")
    unit: Vector = normalise(row[np.newaxis, :], dimensions=dimensions)[0]
    return unit


def normalise(rows: npt.ArrayLike, *, dimensions: int | None = None) -> Matrix:
    """Rows of unit length as contiguous float32. Refuses NaN, infinity, zero rows and a wrong width.

    What has unit length already keeps every bit, so vectors may pass from store to store.
    """
    matrix = np.ascontiguousarray(rows, dtype=np.float32)
    if matrix.ndim != 2:
        raise InvalidArgument(f"vectors are a matrix, one row each; got shape {matrix.shape}")
    if dimensions is not None and matrix.shape[1] != dimensions:
        raise DimensionMismatch(
            f"got vectors of {matrix.shape[1]} dimensions where {dimensions} are expected; "
            "use the model the data was embedded with, or embed the data again",
            details={"expected": dimensions, "actual": int(matrix.shape[1])},
        )
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    bad = ~np.isfinite(lengths) | (lengths < 1e-30)
    if bad.any():
        raise InvalidArgument(
            f"vector {int(np.flatnonzero(bad)[0])} is zero, infinite or not a number; it has no direction to search by"
        )
    # Rounding to float32 moves a length by at most 2**-24; dividing by that again would change last bits for nothing.
    lengths[np.abs(lengths - 1) < 2**-23] = 1
    unit: Matrix = (matrix / lengths[:, np.newaxis]).astype(np.float32)
    return unit


def pack(row: Vector) -> bytes:
    """The little-endian float32 bytes of a row, as databases store it."""
    return row.astype("<f4", copy=False).tobytes()


def unpack(blob: bytes) -> Vector:
    """The row that `pack` wrote."""
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)
