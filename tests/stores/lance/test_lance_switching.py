"""Changing the model of a collection on LanceDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.stores.lance import LanceStore
from homing.stores.lance.catalog import Catalog
from homing.testing.store_contract import record, vector
from homing.testing.switch_contract import NEW, NEW_WIDTH, OpenSwitching, SwitchContract, embedded, switch


class TestLanceStore(SwitchContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenSwitching:
        return lambda: LanceStore(tmp_path / "contract")


@pytest.mark.parametrize("step", ["stage", "activate"])
def test_what_is_killed_before_its_commit_leaves_the_old_answers_and_no_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = LanceStore(tmp_path / "killed")
    store.upsert([record("a", 1, text="灯塔")])
    if step == "activate":
        store.stage("things", NEW, NEW_WIDTH)
        store.add_vectors(embedded(store.missing("things", NEW), 1))
    tables = set(store.database.names())

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            store.stage("things", NEW, NEW_WIDTH) if step == "stage" else store.activate("things", NEW)
    assert [match.id for match in store.search("things", vector(1))] == ["a"]
    store.close()
    again = LanceStore(tmp_path / "killed")
    assert set(again.database.names()) == tables
    assert again.check() == []
    switch(again)
    assert again.model_of("things") == NEW
    again.close()
