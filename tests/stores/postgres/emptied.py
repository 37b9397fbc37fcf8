"""A schema that is emptied instead of made again: making one takes longer than most tests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from homing.stores.postgres.store import PostgresStore
from tests.conftest import Database

Opened = Callable[..., PostgresStore]
TABLES = ("collections", "tallies", "held", "records", "word_segments", "word_pieces", "word_removals")


class Emptied:
    """For a class of tests: one schema for all of them, and each finds it empty."""

    @pytest.fixture(scope="class")
    @classmethod
    def schema(cls) -> str:
        return f"homing_{secrets.token_hex(6)}"

    @pytest.fixture(scope="class")
    @classmethod
    def admin(cls, database: Database, schema: str) -> Iterator[psycopg.Connection]:
        with psycopg.connect(database.admin_url, autocommit=True) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", (f"{schema}, public",))
            yield connection
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))

    @pytest.fixture
    def emptied(self, opened: Opened, admin: psycopg.Connection) -> Opened:
        if admin.execute("SELECT to_regclass('spaces')").fetchone() == (None,):
            opened().close()
        spaces = admin.execute("SELECT 'vectors_' || id FROM spaces").fetchall()
        # Of tables with a few rows, DELETE takes a tenth of what TRUNCATE does.
        for table in (*TABLES, *(one for (one,) in spaces)):
            admin.execute(f"DELETE FROM {table}")
        return opened
