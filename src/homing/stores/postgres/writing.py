"""Records written and removed: texts, metadata, words and vectors together, inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from homing.records import VectorRecord
from homing.stores.arguments import is_encodable
from homing.stores.batches import Batch
from homing.stores.postgres import binary_copy as binary
from homing.stores.postgres.collection import Collection, find, stored_name
from homing.stores.postgres.driver import Connection
from homing.stores.postgres.filtering import labels
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.slots import Words, words
from homing.stores.postgres.spaces import check_fits, checked_model, find_space
from homing.stores.postgres.stored_text import escape, is_plain
from homing.stores.postgres.vector_type import packed

PORTION = 5_000
"""Records that one statement writes."""
VECTORS_AT_ONCE = 500
"""Vectors that one statement writes: into an index that stands already, each takes milliseconds."""
FOLD_AT = 64
"""Tally rows of a collection after which they are folded into one."""


class SpaceMissing(Exception):
    """The model of a batch has no space yet. It is made in a transaction of its own, then the write is done again."""

    def __init__(self, model: str, dimensions: int) -> None:
        super().__init__(model)
        self.model = model
        self.dimensions = dimensions


@dataclass(slots=True)
class Tally:
    """How much a write has added."""

    records: int = 0
    embedded: int = 0
    words: int = 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch with the words of its records: what takes time is worked out once, before the transaction begins."""

    batch: Batch
    words: list[Words]


@dataclass(frozen=True, slots=True)
class Place:
    """Where records go: their collection, the key of each by its position in the batch, and whether it is fenced."""

    collection: Collection
    keys: Mapping[int, int]
    fenced: bool

    @property
    def owner(self) -> tuple[bytes, bytes]:
        """The fields `collection` and `user_id` of every row."""
        return binary.integer(self.collection.id), binary.text(self.collection.user)


def prepare(batch: Batch) -> Prepared:
    """Work out what does not depend on the database."""
    for record in batch.records:
        stored_name(record.id, "id")
    stored_name(batch.collection, "collection")
    checked_model(batch.model, int(batch.vectors.shape[1]))
    return Prepared(
        batch, [words(record.text if record.keywords is None else record.keywords) for record in batch.records]
    )


def upsert(connection: Connection, user: str, prepared: Prepared) -> Collection:
    """Write a batch, replacing what has its ids; returns where it went."""
    batch = prepared.batch
    collection = _held(connection, user, batch)
    tally = Tally()
    # In portions: the server's limit on the time of a statement is not one on the size of an upsert.
    for start in range(0, len(batch.records), PORTION):
        chosen = range(start, min(start + PORTION, len(batch.records)))
        if collection.records:
            _remove(connection, collection, [batch.records[index].id for index in chosen], tally)
        rows = connection.execute(
            "SELECT nextval('keys'), (SELECT row_security_active('records')) FROM generate_series(1, %s)",
            (len(chosen),),
            binary=True,
        ).fetchall()
        place = Place(collection, {index: int(row[0]) for index, row in zip(chosen, rows, strict=True)}, rows[0][1])
        _write_records(connection, place, batch, tally)
        _write_words(connection, place, prepared, tally)
        write_vectors(connection, place, batch, tally)
    add_tally(connection, collection, tally)
    _sort_in(connection)
    return collection


def _sort_in(connection: Connection) -> None:
    """Move the entries that wait in the array indexes to their places. Who does not own them leaves it to vacuum."""
    connection.execute(
        "SELECT gin_clean_pending_list(oid) FROM pg_class "
        "WHERE oid IN ('records_by_attribute'::regclass, 'words_by_slot'::regclass) AND pg_has_role(relowner, 'USAGE')"
    )


def delete(connection: Connection, user: str, name: str, ids: Sequence[str]) -> int:
    """Remove records everywhere; returns how many there were."""
    collection = find(connection, user, name, lock="SHARE")
    if collection is None:
        return 0
    tally = Tally()
    _remove(connection, collection, ids, tally)
    add_tally(connection, collection, tally)
    return -tally.records


def drop(connection: Connection, user: str, name: str) -> int:
    """Remove a collection with all of its records."""
    collection = find(connection, user, name, lock="UPDATE")
    if collection is None:
        return 0
    own = (collection.id, user)
    for space in [*([] if collection.space is None else [collection.space]), *_aside(connection, collection)]:
        connection.execute(f"DELETE FROM {vector_table(space)} WHERE collection = %s AND user_id = %s", own)
    connection.execute("DELETE FROM aside WHERE collection = %s AND user_id = %s", own)
    connection.execute("DELETE FROM words WHERE collection = %s AND user_id = %s", own)
    records = connection.execute("DELETE FROM records WHERE collection = %s AND user_id = %s", own).rowcount
    connection.execute("DELETE FROM tallies WHERE collection = %s AND user_id = %s", own)
    connection.execute("DELETE FROM collections WHERE id = %s AND user_id = %s", own)
    return records


def _held(connection: Connection, user: str, batch: Batch) -> Collection:
    """The collection of a batch, made where there is none, in the space of its vectors, held until the commit."""
    while True:
        known = find(connection, user, batch.collection)
        if known is None:
            connection.execute(
                "INSERT INTO collections(user_id, name) VALUES (%s, %s) ON CONFLICT (user_id, name) DO NOTHING",
                (user, batch.collection),
            )
            continue
        if batch.embedded and _takes_another_model(known, batch):
            # Writers share a collection. The one that gives it another model must have it alone.
            if find(connection, user, batch.collection, lock="NO KEY UPDATE") is None:
                continue
            known = find(connection, user, batch.collection)
            if known is not None and _takes_another_model(known, batch):
                _give_space(connection, known, batch)
                known = find(connection, user, batch.collection)
        else:
            known = find(connection, user, batch.collection, lock="SHARE")
        if known is not None:
            if batch.embedded:
                check_fits(known, batch)
            return known


def _takes_another_model(collection: Collection, batch: Batch) -> bool:
    same = (collection.model, collection.dimensions) == (batch.model, batch.vectors.shape[1])
    return collection.space is None or (not same and collection.embedded == 0)


def _give_space(connection: Connection, collection: Collection, batch: Batch) -> None:
    width = int(batch.vectors.shape[1])
    space = find_space(connection, batch.model, width)
    if space is None:
        raise SpaceMissing(batch.model, width)
    connection.execute("UPDATE collections SET space = %s WHERE id = %s", (space, collection.id))
    own = (collection.id, collection.user)
    gone = connection.execute("DELETE FROM aside WHERE collection = %s AND user_id = %s AND space = %s", (*own, space))
    if gone.rowcount:
        # What lay beside answers again, and counts.
        row = connection.execute(
            f"SELECT count(*) FROM {vector_table(space)} WHERE collection = %s AND user_id = %s", own
        ).fetchone()
        assert row is not None
        add_tally(connection, collection, Tally(embedded=int(row[0])))


def _aside(connection: Connection, collection: Collection) -> list[int]:
    """The spaces that a collection has vectors in which do not answer."""
    rows = connection.execute(
        "SELECT space FROM aside WHERE collection = %s AND user_id = %s", (collection.id, collection.user)
    ).fetchall()
    return [int(space) for (space,) in rows]


def _remove(connection: Connection, collection: Collection, ids: Sequence[str], tally: Tally) -> None:
    # Locked by id: two writers of the same records queue up instead of waiting for each other.
    vectors = (
        "SELECT 0"
        if collection.space is None
        else f"DELETE FROM {vector_table(collection.space)} v USING gone WHERE v.record = gone.key RETURNING 1"
    )
    beside = "".join(
        f"gone_beside_{space} AS (DELETE FROM {vector_table(space)} v USING gone WHERE v.record = gone.key), "
        for space in _aside(connection, collection)
    )
    row = connection.execute(
        "WITH held AS MATERIALIZED (SELECT key FROM records "
        "WHERE collection = %s AND user_id = %s AND id = ANY(%s) ORDER BY id FOR UPDATE), "
        "gone AS (DELETE FROM records r USING held WHERE r.key = held.key RETURNING r.key), "
        "gone_words AS (DELETE FROM words w USING gone WHERE w.record = gone.key RETURNING w.length), "
        f"{beside}gone_vectors AS ({vectors}) "
        "SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM gone_vectors), "
        "(SELECT coalesce(sum(length), 0) FROM gone_words)",
        (collection.id, collection.user, list(ids)),
    ).fetchone()
    assert row is not None
    tally.records -= row[0]
    tally.embedded -= row[1] if collection.space is not None else 0
    tally.words -= row[2]


def _write_records(connection: Connection, place: Place, batch: Batch, tally: Tally) -> None:
    own = place.owner

    def rows() -> Iterator[list[bytes]]:
        for index, key in place.keys.items():
            record = batch.records[index]
            plain = is_plain(record.text) and is_plain(record.keywords)
            yield [
                binary.bigint(key),
                *own,
                binary.text(record.id),
                binary.texts(labels(place.collection.id, record.metadata)),
                binary.text(_json(record)),
                binary.boolean(not plain),
                binary.text(record.text if plain else escape(record.text)),
                binary.text(record.keywords if plain or record.keywords is None else escape(record.keywords)),
            ]

    columns = ("key", "collection", "user_id", "id", "attributes", "metadata", "escaped", "text", "keywords")
    binary.copy(connection, "records", columns, rows(), fenced=place.fenced)
    tally.records += len(place.keys)


def _write_words(connection: Connection, place: Place, prepared: Prepared, tally: Tally) -> None:
    own = place.owner

    def rows() -> Iterator[list[bytes]]:
        for index, key in place.keys.items():
            found = prepared.words[index]
            slots, counts = found.placed(place.collection.id)
            yield [
                binary.bigint(key), *own, binary.integer(found.length), binary.bigints(slots), binary.smallints(counts),
            ]  # fmt: skip

    columns = ("record", "collection", "user_id", "length", "slots", "counts")
    binary.copy(connection, "words", columns, rows(), fenced=place.fenced)
    tally.words += sum(prepared.words[index].length for index in place.keys)


def write_vectors(connection: Connection, place: Place, batch: Batch, tally: Tally) -> None:
    """Write the vectors of those records of a batch that have a key, into the space of their collection."""
    chosen = [(row, index) for row, index in enumerate(batch.embedded) if index in place.keys]
    if not chosen:
        return
    assert place.collection.space is not None
    own = place.owner
    for start in range(0, len(chosen), VECTORS_AT_ONCE):
        portion = chosen[start : start + VECTORS_AT_ONCE]
        vectors = packed(batch.vectors[[row for row, _ in portion]])
        binary.copy(
            connection,
            vector_table(place.collection.space),
            ("record", "collection", "user_id", "embedding"),
            (
                [binary.bigint(place.keys[index]), *own, binary.field(data)]
                for (_, index), data in zip(portion, vectors, strict=True)
            ),
            fenced=place.fenced,
        )
    tally.embedded += len(chosen)


def _json(record: VectorRecord) -> str:
    # Chinese takes half the room unescaped; half a surrogate pair survives only escaped.
    found = json.dumps(dict(record.metadata), ensure_ascii=False, separators=(",", ":"))
    return found if is_encodable(found) else json.dumps(dict(record.metadata), separators=(",", ":"))


def add_tally(connection: Connection, collection: Collection, tally: Tally) -> None:
    """Count what a write has added."""
    own = (collection.id, collection.user)
    connection.execute(
        "INSERT INTO tallies(collection, user_id, records, embedded, words) VALUES (%s, %s, %s, %s, %s)",
        (*own, tally.records, tally.embedded, tally.words),
    )
    if collection.tallies > FOLD_AT:
        # Rows that another writer is folding are left to it.
        connection.execute(
            "WITH old AS (DELETE FROM tallies WHERE ctid IN (SELECT ctid FROM tallies "
            "WHERE collection = %s AND user_id = %s FOR UPDATE SKIP LOCKED) RETURNING records, embedded, words) "
            "INSERT INTO tallies(collection, user_id, records, embedded, words) "
            "SELECT %s, %s, sum(records), sum(embedded), sum(words) FROM old HAVING count(*) > 0",
            own + own,
        )
