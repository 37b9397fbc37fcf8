"""Vectors of records, exact, in the vec0 table of their space, and which record has one of which text."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw
import numpy as np
import numpy.typing as npt

from homing.database.sqlite.rows import rows
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
    # Asked for a list of keys, vec0 reads its whole table; its own tables answer at once.
    table = vector_table(space)
    found = rows(
        connection,
        f"SELECT k.rowid, substr(c.vectors, k.chunk_offset * ?1 + 1, ?1) FROM json_each(?2) AS given "
        f"JOIN {table}_rowids k ON k.rowid = given.value JOIN {table}_vector_chunks00 c ON c.rowid = k.chunk_id",
        (4 * dimensions, json.dumps(list(keys))),
    )
    return {key: np.frombuffer(blob, "<f4").astype(np.float32, copy=False) for key, blob in found}


def cosines(
    connection: apsw.Connection, space: int, dimensions: int, keys: Sequence[int], vector: Vector
) -> dict[int, float]:
    """How near those records that have a vector are to another vector, exactly."""
    found = read(connection, space, dimensions, keys)
    if not found:
        return {}
    stored = np.stack(list(found.values())).astype(np.float64)
    # Summed row by row, so that equal vectors get equal cosines wherever they stand, and ties are ties.
    near: Cosines = np.minimum(1.0, (stored * vector.astype(np.float64)).sum(axis=1))
    return dict(zip(found, near.tolist(), strict=True))
