"""Several processes on one folder: no key twice, nothing half written when one is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from homing.errors import StoreBusy, StoreError
from homing.stores.lance import Database, LanceStore
from homing.stores.lance.catalog import Catalog, Entry
from homing.stores.lance.database import Table
from homing.testing.store_contract import record, vector
from tests.effort import times
from tests.stores.lance import rivals

ENDLESS = """
import sys
from homing.stores.lance import LanceStore
from homing.testing.store_contract import record

store = LanceStore(sys.argv[1])
for number in range(10_000):
    both = [record(f"{number:05d}", 1, number / 100, text=f"词{number}", collection=name) for name in ("one", "two")]
    store.upsert(both)
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("locked", ["locked", "unlocked"])
def test_two_processes_that_insert_the_same_new_ids_leave_each_once(folder: Path, locked: str) -> None:
    LanceStore(folder).upsert([record("first", 1)])
    turns = times(3, in_full=8)
    with rivals.started("insert", folder, "a", locked, turns) as other:
        rivals.insert(str(folder), "b", locked, str(turns))
        assert other.wait(300) == 0
    store = LanceStore(folder)
    assert store.check() == []
    assert [info.records for info in store.collections()] == [1 + turns * 40]
    assert len(list(store.records("things"))) == 1 + turns * 40
    store.close()


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_every_call_whole_or_undone(folder: Path) -> None:
    acknowledged = -1
    command = [sys.executable, "-c", ENDLESS, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        while acknowledged < 3:
            acknowledged = int(writer.stdout.readline())
        time.sleep(0.05)
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    store = LanceStore(folder)
    one, two = ([found.id for found in store.records(name)] for name in ("one", "two"))
    assert one == two
    assert one[: acknowledged + 1] == [f"{number:05d}" for number in range(acknowledged + 1)]
    assert len(one) <= acknowledged + 2
    assert store.check() == []
    store.upsert([record("later", 1, text="又来了", collection="two")])
    assert [found.id for found in store.search_text("two", "又来")] == ["later"]
    store.close()


class Killed(BaseException):
    """Ends a call where it stands."""


@pytest.mark.parametrize(("owner", "step"), [(Database, "create"), (Table, "upsert"), (Catalog, "end")])
def test_a_call_on_several_collections_that_ends_half_way_is_undone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, owner: type, step: str
) -> None:
    store = LanceStore(folder)
    store.upsert([record("a", 1, text="before", collection=name) for name in ("one", "two")])
    real, calls = getattr(owner, step), []

    def dying(*args: Any, **options: Any) -> Any:
        calls.append(step)
        if step == "end":
            raise Killed
        done = real(*args, **options)
        if len(calls) == 2:
            raise Killed
        return done

    with monkeypatch.context() as patch:
        # A killed process undoes nothing itself.
        patch.setattr(Catalog, "undo", lambda *_: None)
        patch.setattr(owner, step, dying)
        with pytest.raises(Killed):
            store.upsert([record("a", 0, 1, text="after", collection=c) for c in ("one", "two", "three", "four")])
    again = LanceStore(folder)
    assert [info.name for info in again.collections()] == ["one", "two"]
    for name in ("one", "two"):
        assert [found.text for found in again.get(name, ["a"])] == ["before"]
        assert [found.text for found in again.search(name, vector(1))] == ["before"]
        assert again.search_text(name, "after") == []
    assert again.check() == []
    assert len(list(folder.glob("c-*"))) == 2
    again.close()


def test_a_collection_that_was_being_dropped_stays_dropped(store: LanceStore, folder: Path) -> None:
    store.upsert([record("a", 1), record("b", 1, collection="others")])
    with store.tables.writing():
        store._catalog.begin([Entry("things", store._catalog.entries()["things"].table, "dropping")])
    assert store.search("things", vector(1)) == []
    assert "left half changed" in store.check()[0]
    again = LanceStore(folder)
    assert [info.name for info in again.collections()] == ["others"]
    assert not list(folder.glob("c-things-*"))
    again.close()


def test_a_writer_that_waits_too_long_says_so(folder: Path) -> None:
    holder = Database(folder)
    waiting = Database(folder, wait=0.05)
    with holder.writing(), pytest.raises(StoreBusy, match="another process has been writing"), waiting.writing():
        pass
    with waiting.writing():
        pass


def test_a_failure_in_the_middle_of_a_call_is_undone_at_once(
    store: LanceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.upsert([record("a", 1, text="before", collection="one")])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(store.tables._connection), "create_table", full)
        with pytest.raises(StoreError, match="no room left"):
            store.upsert([record("a", 0, 1, text="after", collection=name) for name in ("one", "two")])
    assert [found.text for found in store.get("one", ["a"])] == ["before"]
    assert [info.name for info in store.collections()] == ["one"]
    assert store.check() == []
