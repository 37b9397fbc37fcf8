"""The store contract on LanceDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.stores import open_store
from homing.testing.store_contract import OpenStore, StoreContract


class TestLanceStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: open_store(f"lance://{tmp_path}/contract")
