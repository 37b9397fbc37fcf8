"""The keyword index: FTS5 tables that hold the words of the records and nothing else.

BM25 weighs a word by how many texts of its table have it, so collections get tables of their own; only beyond `TABLES`
collections are tables shared, because every table has to be read whenever the file is opened. In a shared table a
collection is a range of keys, and a search reads no further than that.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from homing.database.sqlite.rows import Row, rows
from homing.text.tokens import FTS5_TOKENIZE

TABLES = 32
"""Keyword tables in a file, at most."""

REMOVED_PERCENT = 1
"""Share of removed texts from which on a part of the index is written anew without their words."""

MERGED_PAGES = 16
"""Pages of the index that a removal writes anew at most, beside one for each removed text."""

RANGE = 2**40
"""Keys of a collection: its id times this, and up. More than it will ever use."""


def table(collection: int) -> str:
    """The table with the words of a collection."""
    return f"keywords_{collection % TABLES}"


def first_key(collection: int) -> int:
    """Where the keys of a collection begin; they end where those of the next would."""
    return collection * RANGE


def create(connection: apsw.Connection, collection: int) -> None:
    """Make the table of a new collection, unless it shares one."""
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {table(collection)} USING fts5("
        f"""words, content='', contentless_delete=1, tokenize="{FTS5_TOKENIZE}")"""
    )
    _command(connection, collection, "deletemerge", REMOVED_PERCENT)


def add(connection: apsw.Connection, collection: int, words: Iterable[tuple[int, str]]) -> None:
    """Write the words of records, by key."""
    connection.executemany(f"INSERT INTO {table(collection)}(rowid, words) VALUES (?, ?)", words)


def remove(connection: apsw.Connection, collection: int, keys: Iterable[Row]) -> None:
    """Take records out."""
    gone = list(keys)
    connection.executemany(f"DELETE FROM {table(collection)} WHERE rowid = ?", gone)
    # Their words stay in the index, marked as removed, until what holds them is written anew: a part of that now.
    _command(connection, collection, "merge", MERGED_PAGES + len(gone))


def forget(connection: apsw.Connection, collection: int) -> None:
    """Drop the table of a collection that has no records any more, unless it shares one."""
    sharing = rows(connection, f"SELECT 1 FROM collections WHERE id % {TABLES} = ? LIMIT 2", (collection % TABLES,))
    if len(sharing) < 2:
        connection.execute(f"DROP TABLE IF EXISTS {table(collection)}")


def vocabulary(connection: apsw.Connection, collection: int, kind: str = "row") -> str:
    """A table of the terms of a keyword table: with how many texts hold each (`row`), or each place (`instance`)."""
    name = f"temp.{table(collection)}_{kind}"
    connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5vocab(main, {table(collection)}, {kind})")
    return name


def _command(connection: apsw.Connection, collection: int, name: str, value: int) -> None:
    connection.execute(f"INSERT INTO {table(collection)}({table(collection)}, rank) VALUES (?, ?)", (name, value))
