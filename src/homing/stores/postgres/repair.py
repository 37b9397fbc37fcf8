"""Making anew what is derived: words from the texts, counts from the rows. Indexes are `Indexing`'s."""

from __future__ import annotations

from homing.database.postgres.driver import Connection
from homing.database.postgres.schema import extend_row_security
from homing.records import text_hash
from homing.stores.postgres.checkup import Tables, without_vectors
from homing.stores.postgres.collection import ALONE, Collection, Tally, add_tally, find, held, vectors_in
from homing.stores.postgres.schema import create_vector_table, vector_table
from homing.stores.postgres.words import PostgresWordTables
from homing.stores.store import Rebuilt
from homing.text.terms import terms_in

UNIT = 1e-3
"""How far the length of a vector may be from one."""


def names(connection: Connection, user: str, *, remake: bool) -> list[str]:
    """The collections of a user, also those that count no records. `remake` brings back tables for vectors."""
    if remake:
        _remake_vector_tables(connection)
    rows = connection.execute("SELECT name FROM collections WHERE user_id = %s ORDER BY name", (user,)).fetchall()
    return [name for (name,) in rows]


def _remake_vector_tables(connection: Connection) -> None:
    """Make anew the tables that lost their vectors with pgvector; what was in them is embedded again."""
    for space, dimensions, _ in without_vectors(connection):
        connection.execute(f"DROP TABLE {vector_table(space)}")
        create_vector_table(connection, space, dimensions)
        connection.execute("UPDATE spaces SET indexed = false WHERE id = %s", (space,))
    extend_row_security(connection)


def rebuild(connection: Connection, user: str, name: str) -> Rebuilt:
    """Make anew what is derived of a collection, inside a transaction; who writes to it waits."""
    connection.execute("SET LOCAL statement_timeout = 0")
    collection = find(connection, user, name, lock=ALONE)
    if collection is None:
        return Rebuilt(0, 0)
    words = PostgresWordTables(connection, user)
    words.wait(collection.id)
    whole = (
        (key, terms_in(text if keywords is None else keywords))
        for key, _, text, keywords, digest in Tables(connection, user).texts(collection.id)
        if bytes.fromhex(text_hash(text)) == digest
    )
    texts = words.rebuild(collection.id, whole)
    removed = sum(_distrusted(connection, collection, space.id) for space in held(connection, collection))
    _recount(connection, collection)
    return Rebuilt(texts, removed)


def _distrusted(connection: Connection, collection: Collection, space: int) -> int:
    """Remove vectors of no text, of another text, or of another length than one; returns how many."""
    return connection.execute(
        f"DELETE FROM {vector_table(space)} v WHERE v.collection = %s AND v.user_id = %s AND ("
        "NOT EXISTS (SELECT FROM records r WHERE r.key = v.record AND r.hash = v.hash AND r.collection = v.collection) "
        "OR NOT abs(vector_norm(v.embedding) - 1) < %s)",
        (collection.id, collection.user, UNIT),
    ).rowcount


def _recount(connection: Connection, collection: Collection) -> None:
    own = (collection.id, collection.user)
    [(records,)] = connection.execute(
        "SELECT count(*) FROM records WHERE collection = %s AND user_id = %s", own
    ).fetchall()
    connection.execute("DELETE FROM tallies WHERE collection = %s AND user_id = %s", own)
    embedded = 0 if collection.space is None else vectors_in(connection, collection, collection.space)
    add_tally(connection, collection, Tally(records, embedded))
