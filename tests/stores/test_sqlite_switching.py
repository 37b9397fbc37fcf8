"""Changing the model of a collection on SQLite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from homing.records import VectorRecord
from homing.stores.sqlite import SqliteStore
from homing.testing.switch_contract import NEW, NEW_WIDTH, OpenSwitching, SwitchContract, embedded


class TestSqliteStore(SwitchContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenSwitching:
        return lambda: SqliteStore(tmp_path / "contract.db")


def test_letting_go_of_vectors_gives_their_room_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "many.db")
    rows = np.random.default_rng(1).standard_normal((2000, 64)).astype(np.float32)
    store.upsert(VectorRecord(f"{n}", "c", row, {}, f"{n}", "old@64") for n, row in enumerate(rows))
    store.stage("c", NEW, NEW_WIDTH)
    store.add_vectors(embedded(store.missing("c", NEW), 1))
    assert store.activate("c", NEW) == 0
    with store.database.reading() as connection:
        before = connection.pragma("freelist_count")
    store.discard("c", "old@64")
    with store.database.reading() as connection:
        freed = (connection.pragma("freelist_count") - before) * connection.pragma("page_size")
    assert freed > rows.nbytes
    store.close()
