"""The store contract on LanceDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.stores import open_store
from homing.testing.store_contract import CrashContract, LegsContract, ModelsContract, OpenStore, StoreContract
from tests.effort import times


class TestLanceStore(StoreContract, LegsContract, ModelsContract, CrashContract):
    # LanceDB starts threads when it is imported, so its processes cannot be forks.
    rounds = times(8, in_full=60)

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"lance://{tmp_path}/contract"

    @pytest.fixture
    def open_store(self, store_url: str) -> OpenStore:
        return lambda: open_store(store_url)
