"""The codes of a collection on disk, written so that any number of readers can keep a copy in memory up to date.

Each write appends a segment (the codes it added) and a removal (the keys it took away), and moves the counters in
`matrices`. A reader that knows the counters it has seen reads only what is newer. Small segments are merged as they
pile up; a reader that has seen the parts skips the whole. When the removed rows outweigh the others the segments are
written anew without them and the epoch changes: the one thing that makes a reader start over, and it is paid for by as
many writes before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apsw
import numpy as np

from homing.database.sqlite.database import rows
from homing.stores.sqlite.codes import Codes, Keys, encode, joined
from homing.vectors import Matrix

LARGE = 4_096
"""Rows of the largest segment that one write makes; also where a segment is no longer merged."""
SMALL_SEGMENTS = 64
"""How many small segments are left lying before they are merged."""
DEAD_AT_LEAST = 4_096
"""Removed rows below which starting over is never worth it."""


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
        "INSERT INTO removals(collection, space, records) VALUES (?, ?, ?)",
        (collection, space, records.astype("<i8", copy=False).tobytes()),
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
        rewrite(connection, collection, space, dimensions)


def rewrite(connection: apsw.Connection, collection: int, space: int, dimensions: int) -> None:
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
        "SELECT records FROM removals WHERE collection = ? AND space = ? AND id > ?",
        (collection, space, seen),
    )
    return np.frombuffer(b"".join(blob for (blob,) in blobs), dtype="<i8").astype(np.int64, copy=False)


def parts(
    connection: apsw.Connection, collection: int, space: int, dimensions: int, seen: int = 0, *, until: int = 2**62
) -> Iterator[Part]:
    """The segments of a matrix that hold rows a reader of segment `seen` does not know; some of the rows it may."""
    for row in connection.execute(
        "SELECT id, merged_from, merged_to, records, scales, errors, codes FROM segments WHERE collection = ?1 "
        "AND space = ?2 AND id > ?3 AND id <= ?4 AND (merged_to = 0 OR merged_to > ?3) ORDER BY id",
        (collection, space, seen, until),
    ):
        number, merged_from, merged_to, records, scales, errors, codes = row
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
    connection.execute(
        "INSERT INTO segments(collection, space, rows, merged_from, merged_to, records, scales, errors, codes) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            collection,
            space,
            codes.count,
            *merged,
            codes.records.astype("<i8", copy=False).tobytes(),
            codes.scales.astype("<f4", copy=False).tobytes(),
            codes.errors.astype("<f4", copy=False).tobytes(),
            codes.rows.tobytes(),
        ),
    )


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
