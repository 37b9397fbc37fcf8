"""The store contract on PostgreSQL, for everybody's store and for that of one user behind the fence."""

from __future__ import annotations

import pytest

from homing.testing.store_contract import OpenStore, StoreContract
from tests.stores.postgres.emptied import Emptied, Opened


class TestPostgresStore(Emptied, StoreContract):
    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenStore:
        return emptied


@pytest.mark.slow
class TestStoreOfAUser(Emptied, StoreContract):
    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenStore:
        return lambda: emptied(row_security=True).for_user("李雷")
