"""Vectors as one byte per dimension: small enough to hold all in memory, close enough to find the candidates.

A row is scaled so that its largest component is 127, and rounded. How far rounding moved it, its error, is kept beside
it: no cosine with a unit-length vector can be off by more. So every row that is not a candidate is known not to be
among the nearest, and comparing the candidates exactly gives what comparing everything would.

On disk the codes of a collection are written so that any number of readers can keep a copy in memory up to date. Each
write appends a segment (the codes it added) and a removal (the keys it took away), and moves the counters in
`matrices`. A reader that knows the counters it has seen reads only what is newer. Small segments are merged as they
pile up; a reader that has seen the parts skips the whole. When the removed rows outweigh the others the segments are
written anew without them and the epoch changes: the one thing that makes a reader start over, and it is paid for by as
many writes before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import apsw
import numpy as np
import numpy.typing as npt
import simsimd

from homing.database.sqlite.database import rows
from homing.errors import StoreCorrupt
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
LARGE = 4_096
"""Rows of the largest segment that one write makes; also where a segment is no longer merged."""
SMALL_SEGMENTS = 64
"""How many small segments are left lying before they are merged."""
DEAD_AT_LEAST = 4_096
"""Removed rows below which starting over is never worth it."""


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
        # Not by a product of matrices: for these few, the threads of the library would wake on every core.
        closer = np.einsum("ij,j->i", codes.rows[found].astype(np.float32), self.vector) * codes.scales[found]
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


@dataclass(frozen=True, slots=True)
class Counters:
    """How far a matrix has come. Equal counters, equal contents."""

    collection: int
    space: int
    model: str
    dimensions: int
    epoch: int
    last_segment: int
    last_removal: int
    live: int
    dead: int

    def continues(self, before: Counters) -> bool:
        """Whether a reader that has seen `before` needs to read only what is newer."""
        return (self.collection, self.space, self.epoch) == (before.collection, before.space, before.epoch)


def append(connection: apsw.Connection, collection: int, space: int, records: Keys, vectors: Matrix) -> None:
    """Add the codes of new vectors."""
    for start in range(0, len(records), LARGE):
        _insert(connection, collection, space, encode(records[start : start + LARGE], vectors[start : start + LARGE]))
    connection.execute(
        "INSERT INTO matrices(collection, space, last_segment, live) VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT DO UPDATE SET last_segment = ?3, live = live + ?4",
        (collection, space, connection.last_insert_rowid(), len(records)),
    )
    _merge_small(connection, collection, space, vectors.shape[1])


def remove(connection: apsw.Connection, collection: int, space: int, dimensions: int, records: Keys) -> None:
    """Take rows away."""
    connection.execute(
        "INSERT INTO removals(collection, space, records, checksum) VALUES (?, ?, ?, ?)",
        (collection, space, gone := records.astype("<i8", copy=False).tobytes(), crc32(gone)),
    )
    [(live, dead)] = rows(
        connection,
        "UPDATE matrices SET last_removal = ?1, live = live - ?2, dead = dead + ?2 "
        "WHERE collection = ?3 AND space = ?4 RETURNING live, dead",
        (connection.last_insert_rowid(), len(records), collection, space),
    )
    if not live:
        connection.execute("DELETE FROM segments WHERE collection = ? AND space = ?", (collection, space))
    if not live or (dead >= DEAD_AT_LEAST and dead > live):
        _rewrite(connection, collection, space, dimensions)


def _rewrite(connection: apsw.Connection, collection: int, space: int, dimensions: int) -> None:
    """Write the segments anew without what was removed, and change the epoch."""
    gone = removed_after(connection, collection, space, 0)
    waiting: list[Codes] = []
    last = connection.execute("SELECT max(id) FROM segments").get or 0
    while part := next(parts(connection, collection, space, dimensions, 0, until=last), None):
        connection.execute("DELETE FROM segments WHERE id = ?", (part.id,))
        waiting.append(part.codes.take(~np.isin(part.codes.records, gone)))
        if sum(codes.count for codes in waiting) >= LARGE:
            _insert(connection, collection, space, joined(waiting, dimensions))
            waiting = []
    if any(codes.count for codes in waiting):
        _insert(connection, collection, space, joined(waiting, dimensions))
    connection.execute("DELETE FROM removals WHERE collection = ? AND space = ?", (collection, space))
    connection.execute(
        "UPDATE matrices SET epoch = epoch + 1, last_removal = 0, dead = 0, last_segment = "
        "(SELECT coalesce(max(id), 0) FROM segments WHERE collection = ?1 AND space = ?2) "
        "WHERE collection = ?1 AND space = ?2",
        (collection, space),
    )


def forget(connection: apsw.Connection, collection: int, space: int | None = None) -> None:
    """Remove every trace of a collection, or of its vectors in one space."""
    for table in ("segments", "removals", "matrices"):
        connection.execute(
            f"DELETE FROM {table} WHERE collection = ?1 AND (?2 IS NULL OR space = ?2)", (collection, space)
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One segment; its rows are those of segments `merged_from` to `merged_to`, which are gone."""

    id: int
    merged_from: int
    merged_to: int
    codes: Codes


def removed_after(connection: apsw.Connection, collection: int, space: int, seen: int) -> Keys:
    """The keys removed since removal `seen`."""
    blobs = rows(
        connection,
        "SELECT records, checksum FROM removals WHERE collection = ? AND space = ? AND id > ?",
        (collection, space, seen),
    )
    for blob, guard in blobs:
        _check(guard, len(blob) % 8 == 0, blob)
    return np.frombuffer(b"".join(blob for blob, _ in blobs), dtype="<i8").astype(np.int64, copy=False)


def parts(
    connection: apsw.Connection, collection: int, space: int, dimensions: int, seen: int = 0, *, until: int = 2**62
) -> Iterator[Part]:
    """The segments of a matrix that hold rows a reader of segment `seen` does not know; some of the rows it may."""
    for row in connection.execute(
        "SELECT id, merged_from, merged_to, records, scales, errors, codes, checksum FROM segments "
        "WHERE collection = ?1 AND space = ?2 AND id > ?3 AND id <= ?4 AND (merged_to = 0 OR merged_to > ?3) "
        "ORDER BY id",
        (collection, space, seen, until),
    ):
        number, merged_from, merged_to, records, scales, errors, codes, guard = row
        count = len(records) // 8
        sizes = (len(records), len(scales), len(errors), len(codes))
        _check(guard, sizes == (8 * count, 4 * count, 4 * count, dimensions * count), records, scales, errors, codes)
        yield Part(
            number,
            merged_from,
            merged_to,
            Codes(
                np.frombuffer(records, "<i8").astype(np.int64, copy=False),
                np.frombuffer(scales, "<f4").astype(np.float32, copy=False),
                np.frombuffer(errors, "<f4").astype(np.float32, copy=False),
                np.frombuffer(codes, np.int8).reshape(-1, dimensions),
            ),
        )


def _insert(
    connection: apsw.Connection, collection: int, space: int, codes: Codes, merged: tuple[int, int] = (0, 0)
) -> None:
    blobs = (
        codes.records.astype("<i8", copy=False).tobytes(),
        codes.scales.astype("<f4", copy=False).tobytes(),
        codes.errors.astype("<f4", copy=False).tobytes(),
        codes.rows.tobytes(),
    )
    connection.execute(
        "INSERT INTO segments(collection, space, rows, merged_from, merged_to, records, scales, errors, codes, "
        "checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (collection, space, codes.count, *merged, *blobs, _guard(*blobs)),
    )


def _guard(*blobs: bytes) -> int:
    value = 0
    for blob in blobs:
        value = crc32(blob, value)
    return value


def _check(guard: int | None, fits: bool, *blobs: bytes) -> None:
    """Raises StoreCorrupt where what is stored is not what was written; what is from before has no checksum."""
    if not fits or guard not in (None, _guard(*blobs)):
        raise StoreCorrupt("the compact copy of the vectors is damaged: run `homing repair`, which makes it anew")


def _merge_small(connection: apsw.Connection, collection: int, space: int, dimensions: int) -> None:
    """Join the small segments at the end into one once there are too many of them."""
    [(after, small)] = rows(
        connection,
        "WITH mine AS (SELECT id, rows FROM segments WHERE collection = ?1 AND space = ?2 ORDER BY id DESC LIMIT ?4), "
        "border AS (SELECT coalesce((SELECT max(id) FROM mine WHERE rows >= ?3), min(id) - 1) AS id FROM mine) "
        "SELECT border.id, (SELECT count(*) FROM mine WHERE mine.id > border.id) FROM border",
        (collection, space, LARGE, SMALL_SEGMENTS),
    )
    if small < SMALL_SEGMENTS:
        return
    small_ones = list(parts(connection, collection, space, dimensions, after))
    first, last = small_ones[0].merged_from or small_ones[0].id, small_ones[-1].id
    connection.executemany("DELETE FROM segments WHERE id = ?", [(part.id,) for part in small_ones])
    _insert(connection, collection, space, joined([part.codes for part in small_ones], dimensions), (first, last))
    connection.execute(
        "UPDATE matrices SET last_segment = ? WHERE collection = ? AND space = ?",
        (connection.last_insert_rowid(), collection, space),
    )
