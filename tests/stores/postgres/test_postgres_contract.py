"""The store contract on PostgreSQL, for everybody's store and for that of one user behind the fence."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import psycopg
import pytest

from homing.stores.postgres.store import PostgresStore
from homing.testing.store_contract import OpenStore, StoreContract

Opened = Callable[..., PostgresStore]


@pytest.fixture(scope="class")
def schema() -> str:
    """One for all tests of a class; each finds it empty."""
    return f"homing_{secrets.token_hex(6)}"


@pytest.fixture
def emptied(opened: Opened, admin: psycopg.Connection) -> Opened:
    opened().close()
    admin.execute("TRUNCATE collections, tallies, records, words")
    for (table,) in admin.execute("SELECT 'vectors_' || id FROM spaces").fetchall():
        admin.execute(f"TRUNCATE {table}")
    return opened


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenStore:
        return emptied


@pytest.mark.slow
class TestStoreOfAUser(StoreContract):
    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenStore:
        return lambda: _of_a_user(emptied(row_security=True))


def _of_a_user(store: PostgresStore) -> PostgresStore:
    return store.for_user("李雷")
