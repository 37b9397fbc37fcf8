"""Records written and removed: texts, metadata, words and vectors together, inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from homing.database.sqlite.database import rows
from homing.errors import DimensionMismatch, ModelMismatch
from homing.stores.filters import attributes
from homing.stores.sqlite import keywords, vectors
from homing.stores.sqlite.batch import Batch, checksum
from homing.stores.sqlite.filtering import stored_key
from homing.stores.sqlite.schema import create_space


@dataclass(frozen=True, slots=True)
class Collection:
    """A row of the table of collections; `space` is the one that serves it."""

    id: int
    space: int | None
    records: int
    dimensions: int = 0


def find_collection(connection: apsw.Connection, name: str) -> Collection | None:
    """The collection of that name, if there is one."""
    row = connection.execute(
        "SELECT c.id, c.space, c.records, coalesce(s.dimensions, 0) FROM collections c "
        "LEFT JOIN spaces s ON s.id = c.space WHERE c.name = ?",
        (name,),
    ).fetchone()
    return None if row is None else Collection(*row)


def write(connection: apsw.Connection, batch: Batch) -> None:
    """Write a batch, replacing what has its ids. What says the same keeps its key, its words and its vectors."""
    collection = find_collection(connection, batch.collection) or _create(connection, batch.collection)
    fresh = _replace(connection, collection.id, batch) if collection.records else list(range(len(batch.ids)))
    if fresh:
        _insert(connection, collection, batch, fresh)


def delete(connection: apsw.Connection, collection: int, ids: Sequence[str]) -> int:
    """Remove records everywhere; returns how many there were."""
    found = rows(
        connection,
        "SELECT key, metadata FROM records WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
        (collection, json.dumps(list(ids))),
    )
    _remove(connection, collection, dict(found))
    keywords.tidy(connection, collection, len(found))
    return len(found)


def _replace(connection: apsw.Connection, collection: int, batch: Batch) -> list[int]:
    """Make room for a batch; returns which of its records are to be inserted."""
    known = {
        name: (key, text, words, metadata)
        for key, name, text, words, metadata in rows(
            connection,
            "SELECT key, id, hash, keywords, metadata FROM records "
            "WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
            (collection, json.dumps(batch.ids)),
        )
    }
    embedded = set(batch.embedded)
    fresh: list[int] = []
    gone: dict[int, str] = {}
    for at, name in enumerate(batch.ids):
        if name not in known:
            fresh.append(at)
            continue
        key, text, words, metadata = known[name]
        if at in embedded or (text, words) != (batch.hashes[at], batch.keywords[at]):
            fresh.append(at)
            gone[key] = metadata
        elif metadata != batch.metadata[at]:
            _describe(connection, collection, key, metadata, batch, at)
    _remove(connection, collection, gone)
    return fresh


def _describe(connection: apsw.Connection, collection: int, key: int, before: str, batch: Batch, at: int) -> None:
    """Change the metadata of a record and nothing else."""
    connection.execute(
        "UPDATE records SET metadata = ?, checksum = ? WHERE key = ?",
        (batch.metadata[at], checksum(batch.metadata[at], batch.keywords[at]), key),
    )
    _remove_attributes(connection, collection, {key: before})
    _add_attributes(connection, collection, [(name, value, key) for name, value in batch.pairs[at]])


def _insert(connection: apsw.Connection, collection: Collection, batch: Batch, fresh: Sequence[int]) -> None:
    [(following,)] = rows(
        connection,
        "UPDATE collections SET records = records + ?1, next_key = next_key + ?1 WHERE id = ?2 RETURNING next_key",
        (len(fresh), collection.id),
    )
    key_of = {at: following - len(fresh) + number for number, at in enumerate(fresh)}
    connection.executemany(
        "INSERT INTO records(key, collection, id, metadata, keywords, text, hash, checksum) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                key,
                collection.id,
                batch.ids[at],
                batch.metadata[at],
                batch.keywords[at],
                batch.texts[at],
                batch.hashes[at],
                checksum(batch.metadata[at], batch.keywords[at]),
            )
            for at, key in key_of.items()
        ),
    )
    keywords.add(connection, collection.id, ((key, batch.words[at]) for at, key in key_of.items()))
    pairs = [(name, value, key) for at, key in key_of.items() for name, value in batch.pairs[at]]
    _add_attributes(connection, collection.id, pairs)
    if batch.embedded:
        space = _space(connection, collection, batch)
        keys = [key_of[at] for at in batch.embedded]
        vectors.add(connection, collection.id, space, keys, [batch.hashes[at] for at in batch.embedded], batch.vectors)


def _remove(connection: apsw.Connection, collection: int, found: dict[int, str]) -> None:
    """Take records out everywhere, given their metadata by key."""
    if not found:
        return
    keys = [(key,) for key in found]
    connection.executemany("DELETE FROM records WHERE key = ?", keys)
    keywords.remove(connection, collection, keys)
    _remove_attributes(connection, collection, found)
    vectors.remove(connection, collection, list(found))
    connection.execute("UPDATE collections SET records = records - ? WHERE id = ?", (len(found), collection))


def _add_attributes(connection: apsw.Connection, collection: int, pairs: list[tuple[str, str, int]]) -> None:
    # In the order of the table, which is far cheaper than in the order of the records.
    connection.executemany(
        "INSERT INTO attributes(collection, key, value, record) VALUES (?, ?, ?, ?)",
        [(collection, stored_key(name), value, key) for name, value, key in sorted(pairs)],
    )


def _remove_attributes(connection: apsw.Connection, collection: int, found: dict[int, str]) -> None:
    connection.executemany(
        "DELETE FROM attributes WHERE collection = ? AND key = ? AND value = ? AND record = ?",
        [
            (collection, stored_key(name), value, key)
            for key, metadata in found.items()
            for name, value in attributes(json.loads(metadata))
        ],
    )


def _create(connection: apsw.Connection, name: str) -> Collection:
    connection.execute("INSERT INTO collections(name, next_key) VALUES (?, 0)", (name,))
    created = connection.last_insert_rowid()
    connection.execute("UPDATE collections SET next_key = ? WHERE id = ?", (keywords.first_key(created), created))
    keywords.create(connection, created)
    return Collection(created, None, 0)


def _space(connection: apsw.Connection, collection: Collection, batch: Batch) -> int:
    """The space that serves the collection, which the batch must fit; one without vectors takes that of the batch."""
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
