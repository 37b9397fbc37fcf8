"""Records read back by key, by id, and in order."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from homing.database import Row
from homing.database.sqlite.database import rows
from homing.records import VectorRecord
from homing.stores.filters import Filter, Has
from homing.stores.sqlite import vectors
from homing.stores.sqlite.batch import read_text
from homing.stores.sqlite.filtering import matching
from homing.stores.sqlite.writing import Collection
from homing.vectors import Vector

_COLUMNS = "key, id, metadata, keywords, text"
_OF_IDS = "collection = ? AND id IN (SELECT value FROM json_each(?))"


def texts_of(connection: apsw.Connection, collection: Collection, ids: Sequence[str], lacking: str) -> dict[str, str]:
    """The texts of those records that exist, by id; with `lacking`, that have no vector of this model."""
    found = rows(
        connection,
        f"SELECT id, text FROM records WHERE {_OF_IDS} AND NOT EXISTS (SELECT 1 FROM spaces s "
        "JOIN embeddings e ON e.space = s.id WHERE s.model = ? AND e.record = records.key)",
        (collection.id, json.dumps(list(ids)), lacking),
    )
    return {name: read_text(text) for name, text in found}


def records_with_ids(
    connection: apsw.Connection, name: str, collection: Collection, ids: Sequence[str], *, embeddings: bool = True
) -> list[VectorRecord]:
    """The records of these ids that exist; without `embeddings`, without their vectors."""
    found = rows(connection, f"SELECT {_COLUMNS} FROM records WHERE {_OF_IDS}", (collection.id, json.dumps(list(ids))))
    return _whole(connection, name, collection, found) if embeddings else [_record(name, row) for row in found]


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


def ids_of(connection: apsw.Connection, collection: Collection, asked: Filter) -> list[str]:
    """Every id that passes a filter, in order."""
    if not asked:
        statement = "SELECT id FROM records WHERE collection = ? ORDER BY id"
        return [name for (name,) in rows(connection, statement, (collection.id,))]
    lead = next((one for one in asked if isinstance(one, Has)), None)
    keys = json.dumps(matching(connection, collection.id, asked, lead).tolist())
    statement = "SELECT id FROM records WHERE key IN (SELECT value FROM json_each(?)) ORDER BY id"
    return [name for (name,) in rows(connection, statement, (keys,))]


def _whole(connection: apsw.Connection, name: str, collection: Collection, found: list[Row]) -> list[VectorRecord]:
    if collection.space is None or not found:
        return [_record(name, row) for row in found]
    [(model, dimensions)] = rows(connection, "SELECT model, dimensions FROM spaces WHERE id = ?", (collection.space,))
    held = vectors.read(connection, collection.space, dimensions, [row[0] for row in found])
    return [_record(name, row, held.get(row[0]), model) for row in found]


def _record(name: str, row: Row, vector: Vector | None = None, model: str = "") -> VectorRecord:
    _, record, metadata, keywords, text = row
    return VectorRecord(
        id=record,
        collection=name,
        embedding=vector,
        metadata=json.loads(metadata),
        text=read_text(text),
        model=model if vector is not None else "",
        keywords=None if keywords is None else read_text(keywords),
    )
