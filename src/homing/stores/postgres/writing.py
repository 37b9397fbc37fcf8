"""Records and vectors written and removed: texts, metadata, words and vectors together, inside one transaction.

Whoever changes a record, or gives it a vector, holds its row first, and looks at its words and vectors only then: in a
statement that began before, what others wrote while it waited could not be seen. Whoever puts a vector holds the
collection together with other writers; whoever changes which model serves it holds it alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homing.database.postgres.driver import Connection
from homing.errors import InvalidArgument
from homing.records import VectorRecord, text_hash
from homing.stores.arguments import Batch, check_fits, check_width, metadata_json
from homing.stores.postgres.collection import (
    ALONE,
    Collection,
    Space,
    Tally,
    add_tally,
    checked_model,
    find,
    find_space,
    held,
    hold,
    joined,
    search_space,
    stored_name,
    vectors_in,
)
from homing.stores.postgres.rows import copy_records, copy_vectors, labels, text_columns, unescape
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.words import PostgresWordTables
from homing.text.terms import Terms, terms_of

PORTION = 5_000
"""Records that one statement writes."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch with the words and hashes of its records: worked out once, before the transaction begins."""

    batch: Batch
    words: list[Terms]
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
    said = (record.text if record.keywords is None else record.keywords for record in batch.records)
    return Prepared(
        batch,
        [terms_of(text) for text in said],
        [bytes.fromhex(text_hash(record.text)) for record in batch.records],
    )


def write(connection: Connection, user: str, prepared: Prepared) -> tuple[Collection, bool]:
    """Write a batch, replacing what has its ids; where it went, and whether its keyword index has segments to join."""
    batch = prepared.batch
    collection = _opened(connection, user, batch)
    changes = _Changes(connection, collection)
    # In portions: the server's limit on the time of a statement is not one on the size of a write.
    for start in range(0, len(batch.records), PORTION):
        chosen = range(start, min(start + PORTION, len(batch.records)))
        there: dict[str, Stored] = {}
        if collection.records:
            there = _locked(connection, collection, [batch.records[index].id for index in chosen])
        same = [index for index in chosen if _keeps_vectors(prepared, index, there)]
        changes.update(prepared, {index: there.pop(batch.records[index].id) for index in same})
        changes.remove([stored.key for stored in there.values()])
        changes.insert(prepared, sorted(set(chosen).difference(same)))
    add_tally(connection, collection, changes.tally)
    _sort_in(connection)
    return collection, changes.write_words()


def delete(connection: Connection, user: str, name: str, ids: Sequence[str]) -> int:
    """Remove records everywhere; returns how many there were."""
    collection = joined(connection, user, name)
    if collection is None:
        return 0
    changes = _Changes(connection, collection)
    changes.remove([stored.key for stored in _locked(connection, collection, ids).values()])
    add_tally(connection, collection, changes.tally)
    changes.write_words(purge=True)
    return -changes.tally.records


def drop(connection: Connection, user: str, name: str) -> int:
    """Remove a collection with all of its records."""
    collection = find(connection, user, name, lock="UPDATE")
    if collection is None:
        return 0
    own = (collection.id, user)
    spaces = [vector_table(space.id) for space in held(connection, collection)]
    connection.execute(
        "DELETE FROM word_pieces USING word_segments s WHERE s.id = segment AND s.collection = %s AND s.user_id = %s",
        own,
    )
    for table in (*spaces, "held", "word_segments", "word_removals", "tallies"):
        connection.execute(f"DELETE FROM {table} WHERE collection = %s AND user_id = %s", own)
    records = connection.execute("DELETE FROM records WHERE collection = %s AND user_id = %s", own).rowcount
    connection.execute("DELETE FROM collections WHERE id = %s AND user_id = %s", own)
    return records


def put(connection: Connection, user: str, batch: Batch, hashes: Mapping[str, str]) -> tuple[set[str], Space | None]:
    """Give records the vectors of a batch, where a text has the hash by its id; returns whose got one, and where."""
    width = int(batch.vectors.shape[1])
    collection = joined(connection, user, batch.collection, batch.model, width)
    if collection is None:
        return set(), None
    space = _space(connection, collection, batch.model, width)
    there = _locked(connection, collection, list(hashes))
    rows = [
        (row, there[name])
        for row, name in enumerate(batch.records[index].id for index in batch.embedded)
        if name in there and there[name].hash.hex() == hashes[name]
    ]
    if not rows:
        return set(), None
    keys = [stored.key for _, stored in rows]
    hold(connection, collection, space.id)
    replaced = connection.execute(f"DELETE FROM {vector_table(space.id)} WHERE record = ANY(%s)", (keys,)).rowcount
    vectors = batch.vectors[[row for row, _ in rows]]
    copy_vectors(connection, collection, space.id, keys, [stored.hash for _, stored in rows], vectors)
    if space.id == collection.space:
        add_tally(connection, collection, Tally(embedded=len(keys) - replaced))
    return {batch.records[batch.embedded[row]].id for row, _ in rows}, space


def serve(connection: Connection, user: str, name: str, model: str) -> None:
    """Let the vectors of a model be searched."""
    collection = _alone(connection, user, name)
    if collection is None or (collection.model == model and collection.embedded):
        return
    for one in held(connection, collection):
        if one.model == model and vectors_in(connection, collection, one.id):
            search_space(connection, collection, one.id)
            return
    raise InvalidArgument(f"collection {name!r} has no vectors of {model!r}; embed it with that model first")


def discard(connection: Connection, user: str, name: str, model: str) -> int:
    """Let go of the vectors of a model; returns how many there were."""
    collection = _alone(connection, user, name)
    if collection is None:
        return 0
    if collection.model == model and collection.embedded:
        raise InvalidArgument(f"the vectors of {model!r} serve collection {name!r}; let others serve it first")
    own = (collection.id, collection.user)
    gone = 0
    for one in held(connection, collection):
        if one.model == model and one.id != collection.space:
            gone += connection.execute(
                f"DELETE FROM {vector_table(one.id)} WHERE collection = %s AND user_id = %s", own
            ).rowcount
            connection.execute("DELETE FROM held WHERE collection = %s AND user_id = %s AND space = %s", (*own, one.id))
    return gone


class _Changes:
    """Changes to the records of a collection, counted as they are made."""

    def __init__(self, connection: Connection, collection: Collection) -> None:
        self.tally = Tally()
        self._connection = connection
        self._collection = collection
        self._said: dict[int, Terms] = {}
        self._gone: list[int] = []

    def update(self, prepared: Prepared, same: Mapping[int, Stored]) -> None:
        """Records that keep their texts, keys and vectors: new metadata, and new words for other keywords."""
        if not same:
            return
        records, cursor = prepared.batch.records, self._connection.cursor()

        def described(record: VectorRecord) -> tuple[list[str], str]:
            return labels(self._collection.id, record.metadata), metadata_json(record.metadata)

        cursor.executemany(
            "UPDATE records SET attributes = %s, metadata = %s WHERE key = %s",
            [(*described(records[index]), stored.key) for index, stored in same.items()],
        )
        reworded = {index: stored.key for index, stored in same.items() if records[index].keywords != stored.keywords}
        if reworded:
            # What a key says never changes, so other words are another key.
            keys = dict(zip(reworded, self._new_keys(len(reworded)), strict=True))
            cursor.executemany(
                "UPDATE records SET key = %s, escaped = %s, text = %s, keywords = %s WHERE key = %s",
                [(keys[index], *text_columns(records[index]), key) for index, key in reworded.items()],
            )
            for space in held(self._connection, self._collection):
                moved = [(keys[index], key) for index, key in reworded.items()]
                cursor.executemany(f"UPDATE {vector_table(space.id)} SET record = %s WHERE record = %s", moved)
            self._gone += reworded.values()
            self._said |= {key: prepared.words[index] for index, key in keys.items()}

    def insert(self, prepared: Prepared, chosen: Sequence[int]) -> None:
        """Records that are not there, each with a key of its own."""
        if not chosen:
            return
        batch, hashes = prepared.batch, prepared.hashes
        keys = dict(zip(chosen, self._new_keys(len(chosen)), strict=True))
        new = ((key, batch.records[index], hashes[index]) for index, key in keys.items())
        copy_records(self._connection, self._collection, new)
        self.tally.records += len(keys)
        self._said |= {key: prepared.words[index] for index, key in keys.items()}
        embedded = {index: row for row, index in enumerate(batch.embedded) if index in keys}
        if embedded:
            assert self._collection.space is not None
            copy_vectors(
                self._connection,
                self._collection,
                self._collection.space,
                [keys[index] for index in embedded],
                [hashes[index] for index in embedded],
                batch.vectors[list(embedded.values())],
            )
            self.tally.embedded += len(embedded)

    def remove(self, keys: list[int]) -> None:
        """Remove records that are held, with their vectors."""
        if not keys:
            return
        spaces = [space.id for space in held(self._connection, self._collection)]
        vectors = "".join(
            f", of_{space} AS (DELETE FROM {vector_table(space)} WHERE record = ANY(%(keys)s) RETURNING 1)"
            for space in spaces
        )
        served = self._collection.space
        counted = f"of_{served}" if served in spaces else "(SELECT) nothing WHERE false"
        row = self._connection.execute(
            f"WITH gone AS (DELETE FROM records WHERE key = ANY(%(keys)s)){vectors} SELECT count(*) FROM {counted}",
            {"keys": keys},
        ).fetchone()
        assert row is not None
        self._gone += keys
        self.tally.records -= len(keys)
        self.tally.embedded -= int(row[0])

    def write_words(self, *, purge: bool = False) -> bool:
        """Bring the keyword index up to date; whether it has segments to join. `purge` leaves less of what is gone."""
        if not self._said and not self._gone:
            return False
        tables, collection = PostgresWordTables(self._connection, self._collection.user), self._collection.id
        if self._gone:
            tables.remove(collection, self._gone)
        if purge:
            tables.purge(collection)
        tables.add(collection, sorted(self._said.items()))
        return tables.tidy(collection)

    def _new_keys(self, count: int) -> list[int]:
        rows = self._connection.execute(
            "SELECT nextval('keys') FROM generate_series(1, %s)", (count,), binary=True
        ).fetchall()
        return [int(key) for (key,) in rows]


def _locked(connection: Connection, collection: Collection, ids: Sequence[str]) -> dict[str, Stored]:
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
        check_fits(batch.collection, found.model, found.dimensions, batch.model, width)
    return found


def _keeps_vectors(prepared: Prepared, index: int, there: Mapping[str, Stored]) -> bool:
    """Whether a record without a vector has the text that is there, whose vectors stay."""
    record = prepared.batch.records[index]
    stored = there.get(record.id)
    return stored is not None and record.embedding is None and stored.hash == prepared.hashes[index]


def _sort_in(connection: Connection) -> None:
    """Move the entries that wait in the array index to their places. Who does not own it leaves it to vacuum."""
    connection.execute(
        "SELECT gin_clean_pending_list(oid) FROM pg_class "
        "WHERE oid = 'records_by_attribute'::regclass AND pg_has_role(relowner, 'USAGE')"
    )


def _alone(connection: Connection, user: str, name: str) -> Collection | None:
    """The collection, held alone until the commit, as those who had it before have left it."""
    return find(connection, user, name, lock=ALONE) and find(connection, user, name)


def _space(connection: Connection, collection: Collection, model: str, width: int) -> Space:
    """Where the vectors of a model go, which must be as wide as those that are there."""
    for one in held(connection, collection):
        if one.model == model and one.dimensions != width and vectors_in(connection, collection, one.id):
            check_width(model, one.dimensions, width)
    return find_space(connection, model, width)
