"""Vectors as one byte per dimension: small enough to hold all in memory, close enough to find the candidates.

A row is scaled so that its largest component is 127, and rounded. A cosine computed from codes is off by a few
ten-thousandths, far less than what separates the last match from the last candidate; the candidates are then compared
exactly.
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


def scores(codes: Codes, query: Vector) -> Scores:
    """How near each row is to the query, up to a factor that is the same for all."""
    if not codes.count:
        return np.empty(0, np.float32)
    asked = encode(np.zeros(1, np.int64), query[np.newaxis, :]).rows[0]
    products = np.asarray(simsimd.dot(asked, codes.rows)).reshape(-1)
    found: Scores = np.multiply(products, codes.scales, dtype=np.float32, casting="same_kind")
    return found


def nearest(values: Scores, count: int) -> Positions:
    """The `count` best positions, best first, and every further one that ties with the last; without empty ones."""
    everything = count >= len(values)
    found = np.arange(len(values)) if everything else np.flatnonzero(values >= _threshold(values, count))
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
