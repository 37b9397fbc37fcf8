"""Vectors as one byte per dimension: small enough to hold all in memory, close enough to find the candidates.

A row is scaled so that its largest component is 127, and rounded. A cosine computed from codes is off by a few
ten-thousandths; every row that may be among the nearest for all one can tell is a candidate, compared exactly later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import simsimd

from homing.vectors import Matrix, Vector

Keys = npt.NDArray[np.int64]
"""Keys of records."""
Positions = npt.NDArray[np.int64]
"""Rows of a matrix."""
Scores = npt.NDArray[np.float32]
"""One per row; higher is nearer, minus infinity where there is nothing."""

BLOCK = 64


@dataclass(frozen=True, slots=True)
class Codes:
    """Encoded rows, the scale of each, and the record it belongs to."""

    records: Keys
    scales: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int8]

    @property
    def count(self) -> int:
        """How many rows."""
        return len(self.records)

    def take(self, positions: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Codes:
        """Some of the rows, copied."""
        return Codes(self.records[positions], self.scales[positions], self.rows[positions])


def encode(records: Keys, vectors: Matrix) -> Codes:
    """The codes of unit-length rows."""
    scales = (np.abs(vectors).max(axis=1) / 127).astype(np.float32)
    return Codes(records, scales, np.rint(vectors / scales[:, np.newaxis]).astype(np.int8))


def joined(parts: list[Codes], dimensions: int) -> Codes:
    """All rows, one part after the other."""
    if not parts:
        return Codes(np.empty(0, np.int64), np.empty(0, np.float32), np.empty((0, dimensions), np.int8))
    return Codes(
        np.concatenate([part.records for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.rows for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Query:
    """A vector to compare with codes: itself encoded."""

    code: npt.NDArray[np.int8]
    scale: float

    @classmethod
    def of(cls, vector: Vector) -> Query:
        """The query for a unit-length vector."""
        encoded = encode(np.zeros(1, np.int64), vector[np.newaxis, :])
        return cls(encoded.rows[0], float(encoded.scales[0]))

    def scores(self, codes: Codes) -> Scores:
        """The cosine of each row, as far as codes can tell."""
        if not codes.count:
            return np.empty(0, np.float32)
        # Without `out`: given one, simsimd 6.5 returns a None that it does not own, and after some thousand searches
        # the interpreter aborts.
        values: Scores = np.asarray(simsimd.dot(self.code, codes.rows, out_dtype="float32"))
        values *= codes.scales
        values *= np.float32(self.scale)
        return values

    def doubt(self, scales: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """How far the exact cosines of rows with these scales may lie from their scores.

        Rounding moves a component by up to half a step, evenly. A cosine sums these errors over the row and over the
        query, each weighted by the other, which has unit length: their deviation is a step over root twelve. Six
        deviations are exceeded once in a billion times.
        """
        return np.hypot(scales, np.float32(self.scale)) * np.float32(6 / math.sqrt(12))

    def candidates(self, codes: Codes, values: Scores, count: int) -> Positions:
        """Every position that may be among the `count` nearest, best first, given the scores of the rows."""
        widest = float(self.doubt(codes.scales.max(initial=0.0, keepdims=True))[0])
        found = nearest(values, count, 2 * widest)
        if len(found) <= count:
            return found
        doubts = self.doubt(codes.scales[found])
        surely = np.partition(values[found] - doubts, len(found) - count)[len(found) - count]
        possible: Positions = found[values[found] + doubts >= surely]
        return possible


def nearest(values: Scores, count: int, margin: float = 0.0) -> Positions:
    """The `count` best positions, best first, and every further one within `margin` of the last; without empty ones."""
    everything = count >= len(values)
    found = np.arange(len(values)) if everything else np.flatnonzero(values >= _threshold(values, count) - margin)
    found = found[np.isfinite(values[found])]
    return found[np.argsort(-values[found], kind="stable")]


def _threshold(values: Scores, count: int) -> float:
    """A value that at least `count` rows reach, and not many more."""
    whole = len(values) // BLOCK * BLOCK
    if whole // BLOCK >= 4 * count:
        # Reading the best of each block is ten times faster than partitioning everything; `count` blocks whose best
        # reaches a value are `count` rows that reach it.
        best = values[:whole].reshape(-1, BLOCK).max(axis=1)
        return float(np.partition(best, len(best) - count)[len(best) - count])
    return float(np.partition(values, len(values) - count)[len(values) - count])
