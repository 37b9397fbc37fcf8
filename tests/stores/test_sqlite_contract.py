"""The store contract on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.stores import open_store
from homing.testing.store_contract import (
    ConcurrencyContract,
    CrashContract,
    LegsContract,
    ModelsContract,
    OpenStore,
    StoreContract,
    TransactionContract,
)
from tests.effort import times
from tests.forked import Forks


class TestSqliteStore(
    Forks, StoreContract, LegsContract, ModelsContract, TransactionContract, ConcurrencyContract, CrashContract
):
    rounds = times(12, in_full=60)

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/contract.db"

    @pytest.fixture
    def open_store(self, store_url: str) -> OpenStore:
        return lambda: open_store(store_url)
