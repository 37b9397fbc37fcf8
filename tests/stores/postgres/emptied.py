"""A schema that is emptied instead of made again: making one takes longer than most tests."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import psycopg
import pytest

from homing.stores.postgres.store import PostgresStore

Opened = Callable[..., PostgresStore]


class Emptied:
    """For a class of tests: one schema for all of them, and each finds it empty."""

    @pytest.fixture(scope="class")
    @classmethod
    def schema(cls) -> str:
        return f"homing_{secrets.token_hex(6)}"

    @pytest.fixture
    def emptied(self, opened: Opened, admin: psycopg.Connection) -> Opened:
        opened().close()
        admin.execute("TRUNCATE collections, tallies, held, records, word_segments, word_pieces, word_removals")
        for (table,) in admin.execute("SELECT 'vectors_' || id FROM spaces").fetchall():
            admin.execute(f"TRUNCATE {table}")
        return opened
