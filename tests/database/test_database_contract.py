"""The database contract on SQLite and on PostgreSQL."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from homing.database.postgres.database import PostgresDatabase
from homing.database.sqlite import SqliteDatabase
from homing.testing.database_contract import DatabaseContract, OpenDatabase
from tests.conftest import Database
from tests.forked import Forks


class TestSqliteDatabase(Forks, DatabaseContract):
    @pytest.fixture
    def open_database(self, tmp_path: Path) -> OpenDatabase:
        return partial(SqliteDatabase, tmp_path / "contract.db")


class TestPostgresDatabase(Forks, DatabaseContract):
    @pytest.fixture
    def open_database(self, database: Database, schema: str) -> OpenDatabase:
        return partial(PostgresDatabase, database.url, schema=schema)


class TestDatabaseOfAUser(Forks, DatabaseContract):
    @pytest.fixture
    def open_database(self, database: Database, schema: str) -> OpenDatabase:
        return partial(_of_a_user, database.url, schema)


def _of_a_user(url: str, schema: str) -> PostgresDatabase:
    everybody = PostgresDatabase(url, schema=schema)
    try:
        # A view that was sent elsewhere has connections of its own, and closes them.
        return cast("PostgresDatabase", pickle.loads(pickle.dumps(everybody.for_user("李雷"))))
    finally:
        everybody.close()
