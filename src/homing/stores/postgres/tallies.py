"""What a collection holds, counted by those who write to it."""

from __future__ import annotations

from dataclasses import dataclass

from homing.database.postgres.driver import Connection
from homing.stores.postgres.collection import Collection

FOLD_AT = 64
"""Tally rows of a collection after which they are folded into one."""


@dataclass(slots=True)
class Tally:
    """How much a write has added: records, vectors of the model that serves the collection, words."""

    records: int = 0
    embedded: int = 0
    words: int = 0


def add_tally(connection: Connection, collection: Collection, tally: Tally) -> None:
    """Count what a write has added."""
    if tally == Tally():
        return
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
