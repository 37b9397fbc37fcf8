"""Records written and removed: texts, metadata, words and vectors together, inside one transaction.

Whoever changes a record, or gives it a vector, holds its row first, and looks at its words and vectors only then: in a
statement that began before, what others wrote while it waited could not be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homing.database.postgres.driver import Connection
from homing.records import VectorRecord, text_hash
from homing.stores.arguments import Batch
from homing.stores.postgres.collection import Collection, find, stored_name
from homing.stores.postgres.filtering import labels
from homing.stores.postgres.rows import copy_records, copy_vectors, copy_words, metadata, texts
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.slots import Words, words
from homing.stores.postgres.spaces import check_fits, checked_model, held, joined
from homing.stores.postgres.stored_text import unescape
from homing.stores.postgres.tallies import Tally, add_tally

PORTION = 5_000
"""Records that one statement writes."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch with the words and hashes of its records: worked out once, before the transaction begins."""

    batch: Batch
    words: list[Words]
    hashes: list[bytes]


@dataclass(frozen=True, slots=True)
class Stored:
    """What is there of a record, held until the commit."""

    key: int
    hash: bytes
    keywords: str | None


def prepare(batch: Batch) -> Prepared:
    """Work out what does not depend on the database."""
    for record in batch.records:
        stored_name(record.id, "id")
    stored_name(batch.collection, "collection")
    checked_model(batch.model, int(batch.vectors.shape[1]))
    return Prepared(
        batch,
        [words(record.text if record.keywords is None else record.keywords) for record in batch.records],
        [bytes.fromhex(text_hash(record.text)) for record in batch.records],
    )


def write(connection: Connection, user: str, prepared: Prepared) -> Collection:
    """Write a batch, replacing what has its ids; returns where it went."""
    batch = prepared.batch
    collection = _opened(connection, user, batch)
    tally = Tally()
    # In portions: the server's limit on the time of a statement is not one on the size of a write.
    for start in range(0, len(batch.records), PORTION):
        chosen = range(start, min(start + PORTION, len(batch.records)))
        there: dict[str, Stored] = {}
        if collection.records:
            there = locked(connection, collection, [batch.records[index].id for index in chosen])
        same = [index for index in chosen if _keeps_vectors(prepared, index, there)]
        _update(connection, collection, prepared, {index: there.pop(batch.records[index].id) for index in same}, tally)
        _remove(connection, collection, [stored.key for stored in there.values()], tally)
        _insert(connection, collection, prepared, sorted(set(chosen).difference(same)), tally)
    add_tally(connection, collection, tally)
    _sort_in(connection)
    return collection


def delete(connection: Connection, user: str, name: str, ids: Sequence[str]) -> int:
    """Remove records everywhere; returns how many there were."""
    collection = joined(connection, user, name)
    if collection is None:
        return 0
    tally = Tally()
    _remove(connection, collection, [stored.key for stored in locked(connection, collection, ids).values()], tally)
    add_tally(connection, collection, tally)
    return -tally.records


def drop(connection: Connection, user: str, name: str) -> int:
    """Remove a collection with all of its records."""
    collection = find(connection, user, name, lock="UPDATE")
    if collection is None:
        return 0
    own = (collection.id, user)
    spaces = [vector_table(space.id) for space in held(connection, collection)]
    for table in (*spaces, "held", "words", "tallies"):
        connection.execute(f"DELETE FROM {table} WHERE collection = %s AND user_id = %s", own)
    records = connection.execute("DELETE FROM records WHERE collection = %s AND user_id = %s", own).rowcount
    connection.execute("DELETE FROM collections WHERE id = %s AND user_id = %s", own)
    return records


def locked(connection: Connection, collection: Collection, ids: Sequence[str]) -> dict[str, Stored]:
    """What is there of these records, held until the commit."""
    # By id: two writers of the same records queue up instead of waiting for each other.
    rows = connection.execute(
        "SELECT id, key, hash, escaped, keywords FROM records WHERE collection = %s AND user_id = %s AND id = ANY(%s) "
        "ORDER BY id FOR UPDATE",
        (collection.id, collection.user, list(ids)),
        binary=True,
    ).fetchall()
    return {
        name: Stored(key, bytes(found), unescape(keywords) if escaped and keywords is not None else keywords)
        for name, key, found, escaped, keywords in rows
    }


def _opened(connection: Connection, user: str, batch: Batch) -> Collection:
    """The collection of a batch, made where there is none, and served by the model of its vectors."""
    width = int(batch.vectors.shape[1]) if batch.embedded else 0
    while (found := joined(connection, user, batch.collection, batch.model, width)) is None:
        connection.execute(
            "INSERT INTO collections(user_id, name) VALUES (%s, %s) ON CONFLICT (user_id, name) DO NOTHING",
            (user, batch.collection),
        )
    if width:
        check_fits(found, batch.model, width)
    return found


def _keeps_vectors(prepared: Prepared, index: int, there: Mapping[str, Stored]) -> bool:
    """Whether a record without a vector has the text that is there, whose vectors stay."""
    record = prepared.batch.records[index]
    stored = there.get(record.id)
    return stored is not None and record.embedding is None and stored.hash == prepared.hashes[index]


def _update(
    connection: Connection, collection: Collection, prepared: Prepared, same: Mapping[int, Stored], tally: Tally
) -> None:
    """Records that keep their texts, keys and vectors: new metadata, and new words where the keywords are others."""
    if not same:
        return

    def described(record: VectorRecord) -> tuple[list[str], str]:
        return labels(collection.id, record.metadata), metadata(record)

    records = prepared.batch.records
    cursor = connection.cursor()
    cursor.executemany(
        "UPDATE records SET attributes = %s, metadata = %s WHERE key = %s",
        [(*described(records[index]), stored.key) for index, stored in same.items()],
    )
    reworded = {index: stored.key for index, stored in same.items() if records[index].keywords != stored.keywords}
    if reworded:
        cursor.executemany(
            "UPDATE records SET escaped = %s, text = %s, keywords = %s WHERE key = %s",
            [(*texts(records[index]), key) for index, key in reworded.items()],
        )
        _remove_words(connection, list(reworded.values()), tally)
        _insert_words(connection, collection, prepared, reworded, tally)


def _insert(
    connection: Connection, collection: Collection, prepared: Prepared, chosen: Sequence[int], tally: Tally
) -> None:
    """Records that are not there, each with a key of its own."""
    if not chosen:
        return
    batch = prepared.batch
    rows = connection.execute("SELECT nextval('keys') FROM generate_series(1, %s)", (len(chosen),), binary=True)
    keys = {index: int(key) for index, (key,) in zip(chosen, rows.fetchall(), strict=True)}
    copy_records(
        connection, collection, ((key, batch.records[index], prepared.hashes[index]) for index, key in keys.items())
    )
    tally.records += len(keys)
    _insert_words(connection, collection, prepared, keys, tally)
    embedded = [(row, index) for row, index in enumerate(batch.embedded) if index in keys]
    if embedded:
        assert collection.space is not None
        copy_vectors(
            connection,
            collection,
            collection.space,
            [keys[index] for _, index in embedded],
            [prepared.hashes[index] for _, index in embedded],
            batch.vectors[[row for row, _ in embedded]],
        )
        tally.embedded += len(embedded)


def _insert_words(
    connection: Connection, collection: Collection, prepared: Prepared, keys: Mapping[int, int], tally: Tally
) -> None:
    copy_words(connection, collection, ((key, prepared.words[index]) for index, key in keys.items()))
    tally.words += sum(prepared.words[index].length for index in keys)


def _remove(connection: Connection, collection: Collection, keys: list[int], tally: Tally) -> None:
    """Remove records that are held, with their words and vectors."""
    if not keys:
        return
    spaces = [space.id for space in held(connection, collection)]
    vectors = "".join(
        f", of_{space} AS (DELETE FROM {vector_table(space)} WHERE record = ANY(%(keys)s) RETURNING 1)"
        for space in spaces
    )
    served = f"of_{collection.space}" if collection.space in spaces else "(SELECT) nothing WHERE false"
    row = connection.execute(
        "WITH gone AS (DELETE FROM records WHERE key = ANY(%(keys)s)), "
        f"said AS (DELETE FROM words WHERE record = ANY(%(keys)s) RETURNING length){vectors} "
        f"SELECT (SELECT coalesce(sum(length), 0) FROM said), (SELECT count(*) FROM {served})",
        {"keys": keys},
    ).fetchone()
    assert row is not None
    tally.records -= len(keys)
    tally.words -= int(row[0])
    tally.embedded -= int(row[1])


def _remove_words(connection: Connection, keys: list[int], tally: Tally) -> None:
    rows = connection.execute("DELETE FROM words WHERE record = ANY(%s) RETURNING length", (keys,)).fetchall()
    tally.words -= sum(length for (length,) in rows)


def _sort_in(connection: Connection) -> None:
    """Move the entries that wait in the array indexes to their places. Who does not own them leaves it to vacuum."""
    connection.execute(
        "SELECT gin_clean_pending_list(oid) FROM pg_class "
        "WHERE oid IN ('records_by_attribute'::regclass, 'words_by_slot'::regclass) AND pg_has_role(relowner, 'USAGE')"
    )
