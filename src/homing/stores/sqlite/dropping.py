"""A collection goes at once, and its room is freed in portions, so that nobody waits long for the file."""

from __future__ import annotations

import apsw

from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.database import rows
from homing.stores.sqlite import keywords, segments, vectors
from homing.stores.sqlite.writing import Collection

PORTION = 2_000
"""Records that one transaction removes."""


def forget(connection: apsw.Connection, collection: Collection) -> None:
    """Take a collection's name away: nobody finds it any more, and a new one may have the name."""
    connection.execute("UPDATE collections SET name = NULL WHERE id = ?", (collection.id,))


def free_room(database: SqliteDatabase) -> None:
    """Remove what dropped collections left, here or in a process that was killed."""
    while True:
        with database.reading() as connection:
            dropped = rows(connection, "SELECT id FROM collections WHERE name IS NULL LIMIT 1")
        if not dropped:
            return
        [(collection,)] = dropped
        with database.writing() as connection:
            if not _portion(connection, collection):
                segments.forget(connection, collection)
                keywords.forget(connection, collection)
                connection.execute("DELETE FROM collections WHERE id = ?", (collection,))


def _portion(connection: apsw.Connection, collection: int) -> bool:
    keys = rows(connection, "SELECT key FROM records WHERE collection = ? LIMIT ?", (collection, PORTION))
    if not keys:
        connection.execute("DELETE FROM attributes WHERE collection = ?", (collection,))
        return False
    vectors.remove(connection, collection, [key for (key,) in keys])
    keywords.remove(connection, collection, keys)
    connection.executemany("DELETE FROM records WHERE key = ?", keys)
    return True
