"""Databases for tests of what keeps rows in one. An engine more is a parameter more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from homing.database import Database
from homing.database.sqlite import SqliteDatabase


@pytest.fixture(params=["sqlite"])
def open_database(tmp_path: Path) -> Iterator[Callable[[], Database]]:
    """Opens the database of the test, as another process would; what was opened is closed after the test."""
    opened: list[Database] = []

    def open_it() -> Database:
        opened.append(SqliteDatabase(tmp_path / "homing.db"))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()


@pytest.fixture
def database(open_database: Callable[[], Database]) -> Database:
    return open_database()
