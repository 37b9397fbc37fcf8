"""Records written and removed: texts, metadata, keywords and vectors together, inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import apsw
import numpy as np

from homing.database.sqlite.rows import rows
from homing.errors import DimensionMismatch, ModelMismatch
from homing.stores.attributes import attributes
from homing.stores.sqlite import keywords, segments
from homing.stores.sqlite.batch import Batch
from homing.stores.sqlite.filtering import stored_key
from homing.stores.sqlite.schema import create_space, vector_table
from homing.vectors import pack


@dataclass(frozen=True, slots=True)
class Collection:
    """A row of the table of collections."""

    id: int
    space: int | None
    records: int


def find_collection(connection: apsw.Connection, name: str) -> Collection | None:
    """The collection of that name, if there is one."""
    row = connection.execute("SELECT id, space, records FROM collections WHERE name = ?", (name,)).fetchone()
    return None if row is None else Collection(*row)


def upsert(connection: apsw.Connection, batch: Batch) -> None:
    """Write a batch, replacing what has its ids."""
    collection = find_collection(connection, batch.collection)
    if collection is None:
        collection = _create(connection, batch.collection)
    elif collection.records:
        delete(connection, collection.id, batch.ids)
    [(following,)] = rows(
        connection,
        "UPDATE collections SET records = records + ?1, next_key = next_key + ?1 WHERE id = ?2 RETURNING next_key",
        (len(batch.ids), collection.id),
    )
    first = following - len(batch.ids)
    _write_records(connection, collection.id, first, batch)
    if batch.embedded:
        space = _space(connection, collection, batch)
        _write_vectors(connection, collection.id, space, first, batch)


def delete(connection: apsw.Connection, collection: int, ids: Sequence[str]) -> int:
    """Remove records everywhere; returns how many there were."""
    found = rows(
        connection,
        "SELECT key, metadata FROM records WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
        (collection, json.dumps(ids)),
    )
    if not found:
        return 0
    keys = [(key,) for key, _ in found]
    connection.executemany("DELETE FROM records WHERE key = ?", keys)
    keywords.remove(connection, collection, keys)
    connection.executemany(
        "DELETE FROM attributes WHERE collection = ? AND key = ? AND value = ? AND record = ?",
        [
            (collection, stored_key(name), value, key)
            for key, metadata in found
            for name, value in attributes(json.loads(metadata))
        ],
    )
    _remove_vectors(connection, collection, [key for key, _ in found])
    connection.execute("UPDATE collections SET records = records - ? WHERE id = ?", (len(found), collection))
    return len(found)


def drop(connection: apsw.Connection, collection: Collection) -> None:
    """Remove a collection with all of its records."""
    keys = rows(connection, "SELECT key FROM records WHERE collection = ?", (collection.id,))
    keywords.forget(connection, collection.id, keys)
    for (space,) in rows(connection, "SELECT space FROM matrices WHERE collection = ?", (collection.id,)):
        connection.executemany(f"DELETE FROM {vector_table(space)} WHERE record = ?", keys)
        connection.executemany("DELETE FROM embeddings WHERE space = ? AND record = ?", [(space, *key) for key in keys])
    segments.forget(connection, collection.id)
    connection.execute("DELETE FROM attributes WHERE collection = ?", (collection.id,))
    connection.execute("DELETE FROM records WHERE collection = ?", (collection.id,))
    connection.execute("DELETE FROM collections WHERE id = ?", (collection.id,))


def _create(connection: apsw.Connection, name: str) -> Collection:
    connection.execute("INSERT INTO collections(name, next_key) VALUES (?, 0)", (name,))
    created = connection.last_insert_rowid()
    connection.execute("UPDATE collections SET next_key = ? WHERE id = ?", (keywords.first_key(created), created))
    keywords.create(connection, created)
    return Collection(created, None, 0)


def _write_records(connection: apsw.Connection, collection: int, first: int, batch: Batch) -> None:
    keys = range(first, first + len(batch.ids))
    connection.executemany(
        "INSERT INTO records(key, collection, id, metadata, keywords, text) VALUES (?, ?, ?, ?, ?, ?)",
        zip(keys, [collection] * len(keys), batch.ids, batch.metadata, batch.keywords, batch.texts, strict=True),
    )
    keywords.add(connection, collection, zip(keys, batch.words, strict=True))
    # In the order of the table, which is far cheaper than in the order of the records.
    connection.executemany(
        "INSERT INTO attributes(collection, key, value, record) VALUES (?, ?, ?, ?)",
        [
            (collection, stored_key(name), value, key)
            for name, value, key in sorted(
                (name, value, key) for key, pairs in zip(keys, batch.pairs, strict=True) for name, value in pairs
            )
        ],
    )


def _space(connection: apsw.Connection, collection: Collection, batch: Batch) -> int:
    """The space of the collection, which the batch must fit; an unembedded collection takes that of the batch."""
    row = connection.execute(
        "SELECT s.id, s.model, s.dimensions FROM collections c JOIN spaces s ON s.id = c.space "
        "JOIN matrices m ON m.collection = c.id AND m.space = c.space WHERE c.id = ? AND m.live > 0",
        (collection.id,),
    ).fetchone()
    width = batch.vectors.shape[1]
    if row is None:
        space = create_space(connection, batch.model, width)
        connection.execute("UPDATE collections SET space = ? WHERE id = ?", (space, collection.id))
        return space
    found, model, dimensions = row
    if model != batch.model:
        raise ModelMismatch(
            f"collection {batch.collection!r} holds vectors of {model!r}, got vectors of {batch.model!r}; "
            "vectors of two models cannot be compared: use that model, or embed the collection again",
            details={"collection": batch.collection, "expected": model, "actual": batch.model},
        )
    if dimensions != width:
        raise DimensionMismatch(
            f"collection {batch.collection!r} holds vectors of {dimensions} dimensions, got {width}; "
            "use the model it was embedded with, or embed it again",
            details={"collection": batch.collection, "expected": dimensions, "actual": width},
        )
    return int(found)


def _write_vectors(connection: apsw.Connection, collection: int, space: int, first: int, batch: Batch) -> None:
    keys = [first + index for index in batch.embedded]
    connection.executemany(
        f"INSERT INTO {vector_table(space)}(record, embedding) VALUES (?, ?)",
        zip(keys, map(pack, batch.vectors), strict=True),
    )
    connection.executemany(
        "INSERT INTO embeddings(space, record, text_hash) VALUES (?, ?, ?)",
        zip([space] * len(keys), keys, batch.hashes, strict=True),
    )
    segments.append(connection, collection, space, np.array(keys, np.int64), batch.vectors)


def _remove_vectors(connection: apsw.Connection, collection: int, keys: list[int]) -> None:
    spaces = rows(
        connection,
        "SELECT m.space, s.dimensions FROM matrices m JOIN spaces s ON s.id = m.space WHERE m.collection = ?",
        (collection,),
    )
    for space, dimensions in spaces:
        found = rows(
            connection,
            "SELECT record FROM embeddings WHERE space = ? AND record IN (SELECT value FROM json_each(?))",
            (space, json.dumps(keys)),
        )
        if found:
            connection.executemany(f"DELETE FROM {vector_table(space)} WHERE record = ?", found)
            connection.executemany(f"DELETE FROM embeddings WHERE space = {space} AND record = ?", found)
            gone = np.array([record for (record,) in found], np.int64)
            segments.remove(connection, collection, space, dimensions, gone)
