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
class Fit:
    """What was fitted to searches by both legs: how a fused distance reads as a probability, and how an answer does.

    `distance` is the fused distance at which a hit is as likely to be about the query as not, `power` how fast that
    changes, `sharper` and `few` how much more it says among few texts. The others weigh what `engine.ranking.Standing`
    says of an answer; `unrelated` is the cosine of a text that has nothing to do with the query, where too few texts
    are there to tell.
    """

    distance: float
    power: float
    sharper: float
    few: float
    bias: float
    near: float
    lead: float
    field: float
    short: float
    small: float
    unrelated: float
    wordless: float = 0.0

    def score(self, distance: float, smallness: float = 0.0) -> float:
        """The probability that a hit at this fused distance is about the query: 1 for identity."""
        near = -math.log(max(distance, 1e-9))
        margin = self.power * (near + math.log(self.distance)) + smallness * (self.sharper * near + self.few)
        return 1.0 if margin > 40 else 1 / (1 + math.exp(-margin))


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps a model's raw cosine to a score people can read: 0.5 at the border, 1 for identity.

    `border` is the cosine at which the model is as likely to see a related pair as an unrelated one; `steepness` is
    how fast it makes up its mind. The map is strictly increasing, so no order ever changes. `fit` reads searches by
    meaning and words together; without it their similarity is read as if it were a cosine.
    """

    border: float
    steepness: float
    fit: Fit | None = None

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
    if dimensions in (None, row.size):
        wide = row.astype(np.float64)
        # Most come from a model or a store, and have unit length already.
        if abs(float(wide @ wide) - 1) < 2**-24:
            return row
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
