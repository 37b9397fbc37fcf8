"""Vectors as one byte per dimension: small enough to hold all in memory, close enough to find the candidates.

A row is scaled so that its largest component is 127, and rounded. How far rounding moved it, its error, is kept beside
it: no cosine with a unit-length vector can be off by more. So every row that is not a candidate is known not to be
among the nearest, and comparing the candidates exactly gives what comparing everything would.
"""

from __future__ import annotations

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
Floats = npt.NDArray[np.float32]

BLOCK = 64
ROUNDING = np.float32(1e-5)
"""What sums of float32 may be off by, in any order of adding."""


@dataclass(frozen=True, slots=True)
class Codes:
    """Encoded rows, and for each the record it belongs to, its scale and its error."""

    records: Keys
    scales: Floats
    errors: Floats
    rows: npt.NDArray[np.int8]

    @classmethod
    def room(cls, rows: int, dimensions: int) -> Codes:
        """Room for so many rows, with nothing in it yet."""
        return cls(
            np.empty(rows, np.int64),
            np.empty(rows, np.float32),
            np.empty(rows, np.float32),
            np.empty((rows, dimensions), np.int8),
        )

    @property
    def count(self) -> int:
        """How many rows."""
        return len(self.records)

    def take(self, chosen: Positions | npt.NDArray[np.bool_] | slice) -> Codes:
        """Some of the rows: a view of them where the choice is a slice, else a copy."""
        return Codes(self.records[chosen], self.scales[chosen], self.errors[chosen], self.rows[chosen])

    def put(self, start: int, codes: Codes) -> None:
        """Write rows into the room from a position on."""
        here = slice(start, start + codes.count)
        self.records[here], self.scales[here] = codes.records, codes.scales
        self.errors[here], self.rows[here] = codes.errors, codes.rows


def encode(records: Keys, vectors: Matrix) -> Codes:
    """The codes of unit-length rows."""
    scales = (np.abs(vectors).max(axis=1) / 127).astype(np.float32)
    rounded = np.rint(vectors / scales[:, np.newaxis])
    errors = np.linalg.norm(vectors - rounded * scales[:, np.newaxis], axis=1).astype(np.float32)
    return Codes(records, scales, errors + ROUNDING, rounded.astype(np.int8))


def joined(parts: list[Codes], dimensions: int) -> Codes:
    """All rows, one part after the other."""
    whole = Codes.room(sum(part.count for part in parts), dimensions)
    start = 0
    for part in parts:
        whole.put(start, part)
        start += part.count
    return whole


@dataclass(frozen=True, slots=True)
class Query:
    """A unit-length vector to compare with codes: itself, and encoded."""

    vector: Vector
    code: npt.NDArray[np.int8]
    scale: np.float32
    error: np.float32

    @classmethod
    def of(cls, vector: Vector) -> Query:
        """The query for a vector."""
        encoded = encode(np.zeros(1, np.int64), vector[np.newaxis, :])
        return cls(vector, encoded.rows[0], encoded.scales[0], encoded.errors[0])

    def scores(self, codes: Codes) -> Scores:
        """The cosine of each row, off by no more than `doubt`."""
        if not codes.count:
            return np.empty(0, np.float32)
        # Without `out`: given one, simsimd 6.5 returns a None that it does not own, and after some thousand searches
        # the interpreter aborts.
        values: Scores = np.asarray(simsimd.dot(self.code, codes.rows, out_dtype="float32"))
        values *= codes.scales
        values *= self.scale
        return values

    def doubt(self, codes: Codes) -> float:
        """How far any of the scores may be off: the error of the row, and that of the query."""
        error = float(codes.errors.max(initial=0.0))
        return error + float(self.error) * (1 + error)

    def candidates(self, codes: Codes, values: Scores, count: int) -> Positions:
        """Every position that may be among the `count` nearest, given the scores of the rows."""
        found = nearest(values, count, 2 * self.doubt(codes))
        if len(found) <= count:
            return found
        # For these few the query need not be rounded, which leaves the error of the row alone.
        closer = (codes.rows[found] @ self.vector) * codes.scales[found]
        errors = codes.errors[found]
        surely = np.partition(closer - errors, len(found) - count)[len(found) - count]
        possible: Positions = found[closer + errors >= surely]
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
