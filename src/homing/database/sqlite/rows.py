"""Rows of a query. What a column holds is known where the SQL is written, not to a type checker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

Row = tuple[Any, ...]


def rows(connection: apsw.Connection, sql: str, bindings: Sequence[Any] = ()) -> list[Row]:
    """All rows."""
    return connection.execute(sql, bindings).fetchall()


def rows_of_each(connection: apsw.Connection, sql: str, keys: Iterable[int]) -> list[Row]:
    """The rows for each key, one lookup after the other: given a list of keys, vec0 would scan its whole table."""
    return connection.executemany(sql, ((key,) for key in keys)).fetchall()
