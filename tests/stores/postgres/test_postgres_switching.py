"""Changing the model of a collection on PostgreSQL, for everybody's store and for that of one user behind the fence."""

from __future__ import annotations

import pytest

from homing.testing.switch_contract import OpenSwitching, SwitchContract
from tests.stores.postgres.emptied import Emptied, Opened


class TestPostgresStore(Emptied, SwitchContract):
    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenSwitching:
        return emptied


class TestStoreOfAUser(Emptied, SwitchContract):
    @pytest.fixture
    def open_store(self, emptied: Opened) -> OpenSwitching:
        return lambda: emptied(row_security=True).for_user("李雷")
