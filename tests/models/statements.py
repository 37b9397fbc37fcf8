"""Counts the SQL that is really executed, by every connection opened inside the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw


@contextmanager
def counted_statements() -> Iterator[list[str]]:
    """A list that grows by each statement; looking at the count of commits is not one."""
    seen: list[str] = []

    def note(event: dict[str, Any]) -> None:
        if "data_version" not in event["sql"]:
            seen.append(event["sql"])

    def watch(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, note)

    apsw.connection_hooks.append(watch)
    try:
        yield seen
    finally:
        apsw.connection_hooks.remove(watch)
