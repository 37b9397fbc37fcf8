"""The vectors of several models side by side in one collection, of which one serves it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence

import apsw
import numpy as np

from homing.database.sqlite.database import rows
from homing.errors import InvalidArgument
from homing.stores.arguments import check_width
from homing.stores.sqlite import segments, vectors
from homing.stores.sqlite.reading import RANGE, Collection, first_key, vector_table
from homing.stores.store import ModelInfo, NewVector
from homing.vectors import normalise


def models(connection: apsw.Connection, collection: Collection) -> list[ModelInfo]:
    """The models that a collection holds vectors of, the one that serves it first."""
    return [info for _, info in _spaces(connection, collection)]


def put(connection: apsw.Connection, collection: Collection, model: str, given: Sequence[NewVector]) -> set[str]:
    """Give records their vectors, where they still have the text that was embedded; returns whose got one."""
    width = len(given[0].embedding)
    held = {info.model: info.dimensions for _, info in _spaces(connection, collection)}
    check_width(model, held.get(model, width), width)
    space = vectors.create_space(connection, model, width)
    by_id = {one.id: one for one in given}
    there = rows(
        connection,
        "SELECT r.key, r.id, r.hash FROM records r WHERE r.collection = ?1 "
        "AND r.id IN (SELECT value FROM json_each(?3)) "
        "AND NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.space = ?2 AND e.record = r.key) ORDER BY r.key",
        (collection.id, space, json.dumps(list(by_id))),
    )
    chosen = [(key, name, text) for key, name, text in there if by_id[name].hash == text]
    if not chosen:
        return set()
    # A matrix that is made again must not be taken for the one that a reader may still hold in memory.
    connection.execute(
        "INSERT INTO matrices(collection, space, epoch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (collection.id, space, secrets.randbits(48)),
    )
    rows_to_add = normalise(np.stack([by_id[name].embedding for _, name, _ in chosen]), dimensions=width)
    vectors.add(
        connection, collection.id, space, [key for key, _, _ in chosen], [text for _, _, text in chosen], rows_to_add
    )
    connection.execute(
        "UPDATE collections SET space = ?2 WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM matrices m "
        "WHERE m.collection = ?1 AND m.space = collections.space AND m.live > 0)",
        (collection.id, space),
    )
    return {name for _, name, _ in chosen}


def missing(connection: apsw.Connection, collection: Collection, model: str, after: str, limit: int) -> list[str]:
    """The next ids of records that have no vector of this model."""
    space = _find(connection, collection, model)
    found = rows(
        connection,
        "SELECT r.id FROM records r WHERE r.collection = ? AND r.id > ? AND NOT EXISTS "
        "(SELECT 1 FROM embeddings e WHERE e.space = ? AND e.record = r.key) ORDER BY r.id LIMIT ?",
        (collection.id, after, -1 if space is None else space, limit),
    )
    return [name for (name,) in found]


def serve(connection: apsw.Connection, collection: Collection, model: str) -> None:
    """Let a model serve the collection."""
    space = _find(connection, collection, model)
    if space is None:
        raise InvalidArgument(
            f"collection {collection.name!r} has no vectors of {model!r}; embed it with that model first"
        )
    connection.execute("UPDATE collections SET space = ? WHERE id = ?", (space, collection.id))


def discard(connection: apsw.Connection, collection: Collection, model: str) -> int:
    """Let go of a model's vectors."""
    for space, info in _spaces(connection, collection):
        if info.model == model:
            if info.served:
                raise InvalidArgument(
                    f"{model!r} serves collection {collection.name!r}; let another model serve it first"
                )
            _empty(connection, collection, space, info.dimensions)
            return info.embedded
    return 0


def _empty(connection: apsw.Connection, collection: Collection, space: int, dimensions: int) -> None:
    segments.forget(connection, collection.id, space)
    start = first_key(collection.id)
    keys = rows(
        connection,
        "DELETE FROM embeddings WHERE space = ? AND record >= ? AND record < ? RETURNING record",
        (space, start, start + RANGE),
    )
    if rows(connection, "SELECT 1 FROM matrices WHERE space = ? LIMIT 1", (space,)):
        connection.executemany(f"DELETE FROM {vector_table(space)} WHERE record = ?", keys)
    else:
        # vec0 gives the room of deleted rows back only with the whole table.
        vectors.empty_space(connection, space, dimensions)


def _spaces(connection: apsw.Connection, collection: Collection) -> list[tuple[int, ModelInfo]]:
    found = rows(
        connection,
        "SELECT s.id, s.model, s.dimensions, m.live FROM matrices m JOIN spaces s ON s.id = m.space "
        "WHERE m.collection = ? AND m.live > 0 ORDER BY s.id <> ?, s.id",
        (collection.id, collection.space),
    )
    return [
        (number, ModelInfo(model, dimensions, live, number == collection.space))
        for number, model, dimensions, live in found
    ]


def _find(connection: apsw.Connection, collection: Collection, model: str) -> int | None:
    return next((number for number, info in _spaces(connection, collection) if info.model == model), None)
