"""The database of an app, opened when it is first needed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from homing.database.database import Database
from homing.errors import InvalidArgument

POSTGRES = ("postgresql", "postgres")


class LazyDatabase:
    """Opens one database once, for all who share it. Safe to call from several threads.

    `place` is the path of an SQLite file, or the address of a PostgreSQL server.
    """

    def __init__(self, place: str | Path) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._opened: Database | None = None

    def open(self) -> Database:
        """The database, made where it does not exist."""
        with self._lock:
            if self._opened is None:
                self._opened = _open(self._place)
            return self._opened

    def existing(self) -> Database | None:
        """The database; None where there is none yet. Asking makes no file."""
        there = self._opened is not None or is_postgres(self._place) or Path(self._place).exists()
        return self.open() if there else None

    def close(self) -> None:
        """Let go of the database, if it was opened."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()


def is_postgres(place: str | Path) -> bool:
    """Whether an address names a PostgreSQL server."""
    return isinstance(place, str) and place.partition("://")[0] in POSTGRES


def postgres_options(address: str) -> tuple[str, dict[str, Any]]:
    """The address for the driver, and what of its query is ours: `schema`, `read_url`, `statement_timeout`."""
    place, _, query = address.partition("://")[2].partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    options: dict[str, Any] = {name: given.pop(name) for name in ("schema", "read_url") if name in given}
    if "statement_timeout" in given:
        options["statement_timeout"] = _seconds(given.pop("statement_timeout"))
    # What is left is for the driver, such as sslmode.
    return f"postgresql://{place}" + (f"?{urlencode(given)}" if given else ""), options


def _open(place: str | Path) -> Database:
    if isinstance(place, str) and is_postgres(place):
        from homing.database.postgres.database import PostgresDatabase

        url, options = postgres_options(place)
        return PostgresDatabase(url, **options)
    from homing.database.sqlite import SqliteDatabase

    return SqliteDatabase(place)


def _seconds(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise InvalidArgument(f"statement_timeout is a number of seconds; got {written!r}") from None
