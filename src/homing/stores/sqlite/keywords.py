"""The keyword index: FTS5 tables that hold the words of the records and nothing else.

BM25 weighs a word by how many texts of its table have it, so collections get tables of their own; only beyond `TABLES`
collections are tables shared, because every table has to be read whenever the file is opened. In a shared table a
collection is a range of keys, and a search reads no further than that.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import apsw

from homing.database import Row
from homing.database.sqlite.database import rows
from homing.text.tokens import FTS5_TOKENIZE

TABLES = 32
"""Keyword tables in a file, at most."""

MERGED_PAGES = 16
"""Pages of the index that a removal writes anew at most, beside one for every eight removed texts."""

RANGE = 2**40
"""Keys of a collection: its id times this, and up. More than it will ever use."""


def table(collection: int) -> str:
    """The table with the words of a collection."""
    return f"keywords_{collection % TABLES}"


def terms_table(collection: int) -> str:
    """The table that tells, for each term of a keyword table, how many texts hold it. It takes no room."""
    return f"{table(collection)}_terms"


def first_key(collection: int) -> int:
    """Where the keys of a collection begin; they end where those of the next would."""
    return collection * RANGE


def create(connection: apsw.Connection, collection: int) -> None:
    """Make the table of a new collection, unless it shares one."""
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {table(collection)} USING fts5("
        f"""words, content='', contentless_delete=1, tokenize="{FTS5_TOKENIZE}")"""
    )
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {terms_table(collection)} USING fts5vocab({table(collection)}, row)"
    )


def add(connection: apsw.Connection, collection: int, words: Iterable[tuple[int, str]]) -> None:
    """Write the words of records, by key."""
    connection.executemany(f"INSERT INTO {table(collection)}(rowid, words) VALUES (?, ?)", words)


def remove(connection: apsw.Connection, collection: int, keys: Iterable[Row]) -> None:
    """Take records out."""
    connection.executemany(f"DELETE FROM {table(collection)} WHERE rowid = ?", keys)


def tidy(connection: apsw.Connection, collection: int, removed: int) -> None:
    """Write a part of the index anew, where one text in ten was removed: their words stay in it until that is done."""
    _command(connection, collection, "merge", MERGED_PAGES + removed // 8)


def forget(connection: apsw.Connection, collection: int) -> None:
    """Drop the table of a collection that has no records any more, unless it shares one."""
    sharing = rows(connection, f"SELECT 1 FROM collections WHERE id % {TABLES} = ? LIMIT 2", (collection % TABLES,))
    if len(sharing) < 2:
        for name in (terms_table(collection), table(collection)):
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def look_again(connection: apsw.Connection) -> None:
    """Let this connection see what others wrote: FTS5 checks a table with what it remembers from its last question."""
    tables = rows(connection, "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5(words%'")
    for (name,) in tables:
        # One that is damaged is for the check to tell.
        with suppress(apsw.Error):
            rows(connection, f"SELECT rowid FROM {name}('a') LIMIT 1")


def places(connection: apsw.Connection, collection: int) -> str:
    """A table of every place of every term in a keyword table."""
    name = f"temp.{table(collection)}_places"
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5vocab(main, {table(collection)}, instance)"
    )
    return name


def _command(connection: apsw.Connection, collection: int, name: str, value: int) -> None:
    connection.execute(f"INSERT INTO {table(collection)}({table(collection)}, rank) VALUES (?, ?)", (name, value))
