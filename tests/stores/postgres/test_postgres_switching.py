"""Changing the model of a collection on PostgreSQL, for everybody's store and for that of one user behind the fence."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import psycopg
import pytest

from homing.stores.postgres.store import PostgresStore
from homing.testing.switch_contract import OpenSwitching, SwitchContract

Opened = Callable[..., PostgresStore]


@pytest.fixture(scope="class")
def schema() -> str:
    """One for all tests of a class; each finds it empty."""
    return f"homing_{secrets.token_hex(6)}"


@pytest.fixture
def emptied(opened: Opened, admin: psycopg.Connection) -> Opened:
    opened().close()
    admin.execute("TRUNCATE collections, tallies, aside, records, words")
    for (table,) in admin.execute("SELECT 'vectors_' || id FROM spaces").fetchall():
        admin.execute(f"TRUNCATE {table}")
    return opened


class TestPostgresStore(SwitchContract):
    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenSwitching:
        return emptied


class TestStoreOfAUser(SwitchContract):
    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenSwitching:
        return lambda: emptied(row_security=True).for_user("李雷")
