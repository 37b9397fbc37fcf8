"""Records read back by key, by id, and in order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from homing.database.sqlite.rows import Row, rows, rows_of_each
from homing.records import VectorRecord
from homing.stores.sqlite.batch import read_text
from homing.stores.sqlite.schema import vector_table
from homing.stores.sqlite.writing import Collection
from homing.vectors import unpack

_COLUMNS = "key, id, metadata, keywords, text"


@dataclass(frozen=True, slots=True)
class Stored:
    """What a match shows of a record."""

    id: str
    metadata: dict[str, Any]
    text: str


def best_by_id(connection: apsw.Connection, ranked: list[tuple[float, int]], limit: int) -> list[tuple[float, int]]:
    """The first `limit` of these (value ascending, key) pairs; where values tie, by the ids of the records."""
    if len(ranked) > limit:
        last = ranked[limit - 1][0]
        ranked = [pair for pair in ranked if pair[0] <= last]
    if len({value for value, _ in ranked}) < len(ranked):
        ids: dict[int, str] = dict(
            rows_of_each(connection, "SELECT key, id FROM records WHERE key = ?", [key for _, key in ranked])
        )
        ranked = sorted(ranked, key=lambda pair: (pair[0], ids[pair[1]]))
    return ranked[:limit]


def read_records(connection: apsw.Connection, keys: Sequence[int]) -> dict[int, Stored]:
    """The records of these keys."""
    found = rows_of_each(connection, "SELECT key, id, metadata, text FROM records WHERE key = ?", keys)
    return {key: Stored(name, json.loads(metadata), read_text(text)) for key, name, metadata, text in found}


def records_with_ids(
    connection: apsw.Connection, name: str, collection: Collection, ids: Sequence[str]
) -> list[VectorRecord]:
    """The records of these ids that exist."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM records WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
        (collection.id, json.dumps(ids)),
    )
    return _whole(connection, name, collection, found)


def records_after(
    connection: apsw.Connection, name: str, collection: Collection, after: str, count: int
) -> list[VectorRecord]:
    """The next records in the order of their ids."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM records WHERE collection = ? AND id > ? ORDER BY id LIMIT ?",
        (collection.id, after, count),
    )
    return _whole(connection, name, collection, found)


def ids_of(connection: apsw.Connection, collection: Collection) -> list[str]:
    """Every id in order."""
    statement = "SELECT id FROM records WHERE collection = ? ORDER BY id"
    return [name for (name,) in rows(connection, statement, (collection.id,))]


def _whole(connection: apsw.Connection, name: str, collection: Collection, found: list[Row]) -> list[VectorRecord]:
    vectors: dict[int, bytes] = {}
    model = ""
    if collection.space is not None:
        model = connection.execute("SELECT model FROM spaces WHERE id = ?", (collection.space,)).get
        table = vector_table(collection.space)
        vectors = dict(
            rows_of_each(
                connection, f"SELECT record, embedding FROM {table} WHERE record = ?", [row[0] for row in found]
            )
        )
    return [
        VectorRecord(
            id=record,
            collection=name,
            embedding=unpack(vectors[key]) if key in vectors else None,
            metadata=json.loads(metadata),
            text=read_text(text),
            model=model if key in vectors else "",
            keywords=None if keywords is None else read_text(keywords),
        )
        for key, record, metadata, keywords, text in found
    ]
