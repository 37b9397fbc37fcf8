"""A second model's vectors beside those that answer; see `homing.stores.switching`."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

import apsw
import numpy as np

from homing.database.sqlite.rows import Row, rows
from homing.records import VectorRecord, text_hash
from homing.stores.sqlite import keywords, segments
from homing.stores.sqlite.batch import Batch, read_text
from homing.stores.sqlite.schema import create_space, empty_space, vector_table
from homing.stores.sqlite.writing import Collection, find_collection
from homing.stores.switching import SpaceInfo, check_width, not_staged, only_vectors, still_answering
from homing.vectors import pack

# A record that has a vector of some model of its collection (?1), but none of the space ?2.
_MISSING = (
    "NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.space = ?2 AND e.record = r.key) "
    "AND EXISTS (SELECT 1 FROM matrices m JOIN embeddings e ON e.space = m.space AND e.record = r.key "
    "WHERE m.collection = ?1)"
)


@dataclass(frozen=True, slots=True)
class Space:
    """A model's vectors in one collection."""

    id: int
    info: SpaceInfo


def model_of(connection: apsw.Connection, name: str) -> str:
    """The model that answers; empty where nothing has a vector."""
    row = connection.execute(
        "SELECT s.model FROM collections c JOIN spaces s ON s.id = c.space "
        "JOIN matrices m ON m.collection = c.id AND m.space = c.space WHERE c.name = ? AND m.live > 0",
        (name,),
    ).fetchone()
    return "" if row is None else row[0]


def spaces(connection: apsw.Connection, collection: Collection) -> list[Space]:
    """The models that a collection holds vectors of, the one that answers first."""
    found = rows(
        connection,
        "SELECT s.id, s.model, s.dimensions, m.live FROM matrices m JOIN spaces s ON s.id = m.space "
        "WHERE m.collection = ? ORDER BY s.id <> ?, s.id",
        (collection.id, collection.space),
    )
    return [
        Space(number, SpaceInfo(model, dimensions, live, number == collection.space))
        for number, model, dimensions, live in found
    ]


def stage(connection: apsw.Connection, collection: Collection, model: str, dimensions: int) -> None:
    """Make room for a model's vectors."""
    held = spaces(connection, collection)
    same = [one.info for one in held if one.info.model == model]
    check_width(model, dimensions, (one.dimensions for one in same))
    if any(one.active for one in same):
        return
    space = create_space(connection, model, dimensions)
    for other in held:
        if other.id != space and not other.info.active and not _only_there(connection, collection, other):
            _discard(connection, collection, other)
    # A matrix that is made again must not be taken for the one that a reader may still hold in memory.
    connection.execute(
        "INSERT INTO matrices(collection, space, epoch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (collection.id, space, secrets.randbits(48)),
    )


def missing(
    connection: apsw.Connection, name: str, collection: Collection, model: str, after: int, count: int
) -> tuple[list[VectorRecord], int]:
    """The next records in the order of their keys that lack a vector of this model, and the key of the last."""
    space = _find(connection, collection, model)
    start = max(after + 1, keywords.first_key(collection.id))
    found = rows(
        connection,
        "SELECT key, id, metadata, keywords, text FROM records r "
        f"WHERE r.key >= ?3 AND r.key < ?4 AND {_MISSING} ORDER BY r.key LIMIT ?5",
        (
            collection.id,
            -1 if space is None else space.id,
            start,
            keywords.first_key(collection.id) + keywords.RANGE,
            count,
        ),
    )
    return [_record(name, row) for row in found], found[-1][0] if found else after


def add(connection: apsw.Connection, batch: Batch) -> int:
    """Give records the vectors of a batch, where they still have the text that was embedded."""
    collection = find_collection(connection, batch.collection)
    if collection is None or not batch.embedded:
        return 0
    space = _find(connection, collection, batch.model)
    if space is None or space.info.dimensions != batch.vectors.shape[1]:
        raise not_staged(batch.collection, f"{batch.model!r} with {batch.vectors.shape[1]} dimensions")
    wanted = {batch.ids[at]: row for row, at in enumerate(batch.embedded)}
    there = rows(
        connection,
        "SELECT r.key, r.id, r.text FROM records r WHERE r.collection = ?1 "
        f"AND r.id IN (SELECT value FROM json_each(?3)) AND {_MISSING} ORDER BY r.key",
        (collection.id, space.id, json.dumps(list(wanted))),
    )
    chosen = [(key, wanted[one]) for key, one, text in there if text_hash(read_text(text)) == batch.hashes[wanted[one]]]
    if not chosen:
        return 0
    vectors = batch.vectors[[row for _, row in chosen]]
    connection.executemany(
        f"INSERT INTO {vector_table(space.id)}(record, embedding) VALUES (?, ?)",
        [(key, pack(vector)) for (key, _), vector in zip(chosen, vectors, strict=True)],
    )
    connection.executemany(
        "INSERT INTO embeddings(space, record, text_hash) VALUES (?, ?, ?)",
        [(space.id, key, batch.hashes[row]) for key, row in chosen],
    )
    keys = np.array([key for key, _ in chosen], np.int64)
    segments.append(connection, collection.id, space.id, keys, vectors)
    return len(chosen)


def activate(connection: apsw.Connection, name: str, collection: Collection, model: str, complete: bool) -> int:
    """Let a model's vectors answer."""
    space = _find(connection, collection, model)
    if space is None:
        raise not_staged(name, repr(model))
    start = keywords.first_key(collection.id)
    [(lacking,)] = rows(
        connection,
        f"SELECT count(*) FROM records r WHERE r.key >= ?3 AND r.key < ?4 AND {_MISSING}",
        (collection.id, space.id, start, start + keywords.RANGE),
    )
    if not (lacking and complete):
        connection.execute("UPDATE collections SET space = ? WHERE id = ?", (space.id, collection.id))
    return int(lacking)


def discard(connection: apsw.Connection, name: str, collection: Collection, model: str) -> int:
    """Let go of a model's vectors."""
    space = _find(connection, collection, model)
    if space is None:
        return 0
    if space.info.active:
        raise still_answering(name, model)
    if lost := _only_there(connection, collection, space):
        raise only_vectors(name, model, lost)
    _discard(connection, collection, space)
    return space.info.embedded


def _only_there(connection: apsw.Connection, collection: Collection, space: Space) -> int:
    """How many records have a vector in this space and in no other."""
    start = keywords.first_key(collection.id)
    [(count,)] = rows(
        connection,
        "SELECT count(*) FROM embeddings e WHERE e.space = ?2 AND e.record >= ?3 AND e.record < ?4 AND NOT EXISTS ("
        "SELECT 1 FROM matrices m JOIN embeddings o ON o.space = m.space AND o.record = e.record "
        "WHERE m.collection = ?1 AND m.space <> ?2)",
        (collection.id, space.id, start, start + keywords.RANGE),
    )
    return int(count)


def _discard(connection: apsw.Connection, collection: Collection, space: Space) -> None:
    segments.forget(connection, collection.id, space.id)
    start = keywords.first_key(collection.id)
    keys = rows(
        connection,
        "DELETE FROM embeddings WHERE space = ? AND record >= ? AND record < ? RETURNING record",
        (space.id, start, start + keywords.RANGE),
    )
    if rows(connection, "SELECT 1 FROM matrices WHERE space = ? LIMIT 1", (space.id,)):
        connection.executemany(f"DELETE FROM {vector_table(space.id)} WHERE record = ?", keys)
    else:
        # vec0 gives the room of deleted rows back only with the whole table.
        empty_space(connection, space.id, space.info.dimensions)


def _find(connection: apsw.Connection, collection: Collection, model: str) -> Space | None:
    return next((one for one in spaces(connection, collection) if one.info.model == model), None)


def _record(collection: str, row: Row) -> VectorRecord:
    _, name, metadata, words, text = row
    return VectorRecord(
        id=name,
        collection=collection,
        embedding=None,
        metadata=json.loads(metadata),
        text=read_text(text),
        keywords=None if words is None else read_text(words),
    )
