"""The store contract on PostgreSQL, for everybody's store and for that of one user behind the fence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from homing.stores.postgres.store import PostgresStore
from homing.testing.store_contract import OpenStore, StoreContract

Opened = Callable[..., PostgresStore]


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_store(self, opened: Opened) -> OpenStore:
        return opened


class TestStoreOfAUser(StoreContract):
    @pytest.fixture
    def open_store(self, opened: Opened) -> OpenStore:
        return lambda: opened(row_security=True).for_user("李雷")
