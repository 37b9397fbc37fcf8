"""Vectors of records, exact, in the vec0 table of their space, and which record has one of which text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from homing.database.sqlite.database import rows
from homing.stores.sqlite import segments
from homing.stores.sqlite.schema import vector_table
from homing.vectors import Matrix, Vector, pack

Cosines = npt.NDArray[np.float64]


def add(
    connection: apsw.Connection,
    collection: int,
    space: int,
    keys: Sequence[int],
    hashes: Sequence[str],
    vectors: Matrix,
) -> None:
    """Write the vectors of records, by key, for the texts with these hashes."""
    connection.executemany(
        f"INSERT INTO {vector_table(space)}(record, embedding) VALUES (?, ?)",
        zip(keys, map(pack, vectors), strict=True),
    )
    connection.executemany(
        "INSERT INTO embeddings(space, record, text_hash) VALUES (?, ?, ?)",
        zip([space] * len(keys), keys, hashes, strict=True),
    )
    segments.append(connection, collection, space, np.array(keys, np.int64), vectors)


def remove(connection: apsw.Connection, collection: int, keys: Sequence[int]) -> None:
    """Take the vectors of records away, those of every model."""
    spaces = rows(
        connection,
        "SELECT m.space, s.dimensions FROM matrices m JOIN spaces s ON s.id = m.space WHERE m.collection = ?",
        (collection,),
    )
    for space, dimensions in spaces:
        found = rows(
            connection,
            "DELETE FROM embeddings WHERE space = ? AND record IN (SELECT value FROM json_each(?)) RETURNING record",
            (space, json.dumps(list(keys))),
        )
        if found:
            connection.executemany(f"DELETE FROM {vector_table(space)} WHERE record = ?", found)
            gone = np.array([record for (record,) in found], np.int64)
            segments.remove(connection, collection, space, dimensions, gone)


def read(connection: apsw.Connection, space: int, dimensions: int, keys: Sequence[int]) -> dict[int, Vector]:
    """The vectors of those records that have one, by key, in one statement."""
    sql = f"SELECT r.key, {_VECTOR} FROM json_each(?2) AS given JOIN records r ON r.key = given.value {_stored(space)}"
    found = rows(connection, sql, (4 * dimensions, json.dumps(list(keys))))
    return {key: np.frombuffer(blob, "<f4").astype(np.float32, copy=False) for key, blob in found}


def cosines(
    connection: apsw.Connection, space: int, dimensions: int, keys: Sequence[int], vector: Vector
) -> dict[str, float]:
    """How near those records that have a vector are to another vector, exactly, by id, in one statement."""
    sql = f"SELECT r.id, {_VECTOR} FROM json_each(?2) AS given JOIN records r ON r.key = given.value {_stored(space)}"
    return _near(rows(connection, sql, (4 * dimensions, json.dumps(list(keys)))), vector)


def measured(
    connection: apsw.Connection, collection: int, space: int | None, ids: Sequence[str], vector: Vector | None
) -> tuple[dict[str, int], dict[str, float]]:
    """The keys of those of these records that exist, and how near those are that have a vector, in one statement."""
    wanted = (collection, json.dumps(list(ids)))
    listed = "FROM records r {} WHERE r.collection = ?{} AND r.id IN (SELECT value FROM json_each(?{}))"
    if vector is None or space is None:
        return dict(rows(connection, "SELECT r.id, r.key " + listed.format("", 1, 2), wanted)), {}
    sql = f"SELECT r.id, r.key, {_VECTOR} " + listed.format(_stored(space, "LEFT JOIN"), 2, 3)
    found = rows(connection, sql, (4 * len(vector), *wanted))
    near = _near([(name, blob) for name, _, blob in found if blob is not None], vector)
    return {name: key for name, key, _ in found}, near


_VECTOR = "substr(c.vectors, k.chunk_offset * ?1 + 1, ?1)"


def _stored(space: int, join: str = "JOIN") -> str:
    """Joins the vectors of a space, as `_VECTOR` reads them, to records."""
    # Asked for a list of keys, vec0 reads its whole table; its own tables answer at once.
    table = vector_table(space)
    return f"{join} {table}_rowids k ON k.rowid = r.key {join} {table}_vector_chunks00 c ON c.rowid = k.chunk_id"


def _near(found: Sequence[tuple[Any, ...]], vector: Vector) -> dict[str, float]:
    if not found:
        return {}
    stored = np.stack([np.frombuffer(blob, "<f4") for _, blob in found]).astype(np.float64)
    # Summed row by row, so that equal vectors get equal cosines wherever they stand, and ties are ties.
    near: Cosines = np.minimum(1.0, (stored * vector.astype(np.float64)).sum(axis=1))
    return dict(zip((name for name, _ in found), near.tolist(), strict=True))
