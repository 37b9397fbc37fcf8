"""Records written and removed: texts, metadata, words and vectors together, inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import apsw

from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.database import rows
from homing.records import VectorRecord, text_hash
from homing.stores import arguments
from homing.stores.filters import attributes
from homing.stores.sqlite import segments, vectors, words
from homing.stores.sqlite.reading import Collection, Text, find_collection, first_key, stored_text
from homing.text.terms import Terms, terms_of
from homing.vectors import Matrix

PORTION = 2_000
"""Records of a dropped collection that one transaction removes."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A record as its row holds it, with its words and the pairs it is found by."""

    id: str
    metadata: str
    keywords: Text | None
    text: Text
    hash: str
    words: Terms
    pairs: set[tuple[str, str]]

    @property
    def checksum(self) -> int:
        """Guards what the row holds beside its text."""
        return checksum(self.metadata, self.keywords)


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one collection, each id once. Row `i` of `vectors` belongs to record `embedded[i]`."""

    collection: str
    records: list[Prepared]
    embedded: list[int]
    model: str
    vectors: Matrix


def batches(records: Iterable[VectorRecord], dimensions: int | None) -> list[Batch]:
    """One batch per collection, worked out before the file is locked. Of records with one key the last wins."""
    found = list[Batch]()
    for one in arguments.batches(records, dimensions):
        prepared = [_prepared(record) for record in one.records]
        found.append(Batch(one.collection, prepared, one.embedded, one.model, one.vectors))
    return found


def _prepared(record: VectorRecord) -> Prepared:
    return Prepared(
        id=record.id,
        metadata=arguments.metadata_json(record.metadata),
        keywords=None if record.keywords is None else stored_text(record.keywords),
        text=stored_text(record.text),
        hash=text_hash(record.text),
        words=terms_of(record.text if record.keywords is None else record.keywords),
        pairs=attributes(record.metadata),
    )


def checksum(metadata: str, keywords: Text | None) -> int:
    """Guards what a row holds beside its text."""
    beside = keywords if keywords is not None else ""
    return crc32(metadata.encode() + b"\0" + (beside if isinstance(beside, bytes) else beside.encode()))


def write(connection: apsw.Connection, batch: Batch) -> int | None:
    """Write a batch, replacing what has its ids. What says the same keeps its key, its words and its vectors.

    The number of the collection, where its keyword index has large segments to join, which `Merger` does.
    """
    collection = find_collection(connection, batch.collection) or _create(connection, batch.collection)
    fresh = _replace(connection, collection.id, batch) if collection.records else list(range(len(batch.records)))
    return collection.id if fresh and _insert(connection, collection.id, batch, fresh) else None


def delete(connection: apsw.Connection, collection: int, ids: Sequence[str]) -> int:
    """Remove records everywhere; returns how many there were."""
    found = rows(
        connection,
        "SELECT key, metadata FROM records WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
        (collection, json.dumps(ids)),
    )
    if found:
        _remove(connection, collection, dict(found))
        keywords = words.tables(connection)
        keywords.purge(collection)
        keywords.tidy(collection)
    return len(found)


def free_room(database: SqliteDatabase) -> None:
    """Remove what dropped collections left, here or in a process that was killed: in portions, so that nobody waits
    long for the file."""
    while True:
        with database.reading() as connection:
            dropped = rows(connection, "SELECT id FROM collections WHERE name IS NULL LIMIT 1")
        if not dropped:
            return
        [(collection,)] = dropped
        with database.writing() as connection:
            keys = rows(connection, "SELECT key FROM records WHERE collection = ? LIMIT ?", (collection, PORTION))
            if keys:
                vectors.remove(connection, collection, [key for (key,) in keys])
                connection.executemany("DELETE FROM records WHERE key = ?", keys)
            elif not words.tables(connection).drop_some(collection):
                segments.forget(connection, collection)
                connection.execute("DELETE FROM attributes WHERE collection = ?", (collection,))
                connection.execute("DELETE FROM collections WHERE id = ?", (collection,))


def _replace(connection: apsw.Connection, collection: int, batch: Batch) -> list[int]:
    """Make room for a batch; returns which of its records are to be inserted."""
    known = {
        name: (key, text, keywords, metadata)
        for key, name, text, keywords, metadata in rows(
            connection,
            "SELECT key, id, hash, keywords, metadata FROM records "
            "WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
            (collection, json.dumps([one.id for one in batch.records])),
        )
    }
    embedded = set(batch.embedded)
    fresh: list[int] = []
    gone: dict[int, str] = {}
    for at, one in enumerate(batch.records):
        if one.id not in known:
            fresh.append(at)
            continue
        key, text, keywords, metadata = known[one.id]
        if at in embedded or (text, keywords) != (one.hash, one.keywords):
            fresh.append(at)
            gone[key] = metadata
        elif metadata != one.metadata:
            _describe(connection, collection, key, metadata, one)
    _remove(connection, collection, gone)
    return fresh


def _describe(connection: apsw.Connection, collection: int, key: int, before: str, record: Prepared) -> None:
    """Change the metadata of a record and nothing else."""
    connection.execute(
        "UPDATE records SET metadata = ?, checksum = ? WHERE key = ?", (record.metadata, record.checksum, key)
    )
    _remove_attributes(connection, collection, {key: before})
    _add_attributes(connection, collection, {key: record})


def _insert(connection: apsw.Connection, collection: int, batch: Batch, fresh: Sequence[int]) -> bool:
    [(following,)] = rows(
        connection,
        "UPDATE collections SET records = records + ?1, next_key = next_key + ?1 WHERE id = ?2 RETURNING next_key",
        (len(fresh), collection),
    )
    key_of = dict(zip(fresh, range(following - len(fresh), following), strict=True))
    by_key = {key: batch.records[at] for at, key in key_of.items()}
    connection.executemany(
        "INSERT INTO records(key, collection, id, metadata, keywords, text, hash, checksum) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (key, collection, one.id, one.metadata, one.keywords, one.text, one.hash, one.checksum)
            for key, one in by_key.items()
        ],
    )
    keywords = words.tables(connection)
    keywords.add(collection, [(key, one.words) for key, one in by_key.items()])
    _add_attributes(connection, collection, by_key)
    if batch.embedded:
        keys = [key_of[at] for at in batch.embedded]
        hashes = [batch.records[at].hash for at in batch.embedded]
        vectors.add(connection, collection, _space(connection, collection, batch), keys, hashes, batch.vectors)
    return keywords.tidy(collection)


def _remove(connection: apsw.Connection, collection: int, found: dict[int, str]) -> None:
    """Take records out everywhere, given their metadata by key."""
    if not found:
        return
    keys = [(key,) for key in found]
    connection.executemany("DELETE FROM records WHERE key = ?", keys)
    words.tables(connection).remove(collection, list(found))
    _remove_attributes(connection, collection, found)
    vectors.remove(connection, collection, list(found))
    connection.execute("UPDATE collections SET records = records - ? WHERE id = ?", (len(found), collection))


def _add_attributes(connection: apsw.Connection, collection: int, by_key: Mapping[int, Prepared]) -> None:
    pairs = [(name, value, key) for key, one in by_key.items() for name, value in one.pairs]
    # In the order of the table, which is far cheaper than in the order of the records.
    connection.executemany(
        "INSERT INTO attributes(collection, key, value, record) VALUES (?, ?, ?, ?)",
        [(collection, stored_text(name), value, key) for name, value, key in sorted(pairs)],
    )


def _remove_attributes(connection: apsw.Connection, collection: int, found: dict[int, str]) -> None:
    connection.executemany(
        "DELETE FROM attributes WHERE collection = ? AND key = ? AND value = ? AND record = ?",
        [
            (collection, stored_text(name), value, key)
            for key, metadata in found.items()
            for name, value in attributes(json.loads(metadata))
        ],
    )


def _create(connection: apsw.Connection, name: str) -> Collection:
    connection.execute("INSERT INTO collections(name, next_key) VALUES (?, 0)", (name,))
    created = connection.last_insert_rowid()
    connection.execute("UPDATE collections SET next_key = ? WHERE id = ?", (first_key(created), created))
    return Collection(created, name, 0)


def _space(connection: apsw.Connection, collection: int, batch: Batch) -> int:
    """The space that serves the collection, which the batch must fit; one without vectors takes that of the batch."""
    found = find_collection(connection, batch.collection)
    held = None if found is None else found.counters
    width = batch.vectors.shape[1]
    if held is None or not held.live:
        space = vectors.create_space(connection, batch.model, width)
        connection.execute("UPDATE collections SET space = ? WHERE id = ?", (space, collection))
        return space
    arguments.check_fits(batch.collection, held.model, held.dimensions, batch.model, width)
    return held.space
