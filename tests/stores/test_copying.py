"""Moving between engines: nothing is lost, nothing changes, and an interrupted move goes on."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from homing.cli.main import app
from homing.errors import InvalidArgument, NotFound, StoreError
from homing.records import VectorRecord
from homing.stores import open_store
from homing.stores.copying import BOOKMARK, copy_store
from homing.stores.lance import LanceStore
from homing.stores.sqlite import SqliteStore
from homing.stores.store import SearchOptions, Store
from tests.forked import start_python

pytestmark = pytest.mark.slow


def content() -> Iterator[VectorRecord]:
    chance = np.random.default_rng(3)
    for number in range(1_700):
        row = chance.standard_normal(7).astype(np.float32)
        text = f"第{number}条 note about {'灯' * (number % 5)}"
        yield VectorRecord(f"{number:05d}", "笔记", row, {"n": number, "tags": ["x", number % 3]}, text, "m@7")
    yield VectorRecord("only words", "笔记", None, {}, "没有向量", "", "关键词 keywords")
    odd = chance.standard_normal(3).astype(np.float32)
    yield VectorRecord("half \U0001f680", "a/b's", odd, {"名": None}, "\ud83d half", "other@3")
    yield VectorRecord("z", "Z", None, {"deep": {"k": [1, 2.5, True]}}, "")


def everything(store: Store) -> list[object]:
    return [
        (replace(record, embedding=None), None if record.embedding is None else record.embedding.tobytes())
        for info in store.collections()
        for record in store.records(info.name)
    ]


Engine = Callable[[Path], Store]
ENGINES: dict[str, Engine] = {
    "sqlite": lambda folder: open_store(folder / "store.db"),
    "lance": lambda folder: open_store(f"lance://{folder}/store"),
}


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "source.db")
    store.upsert(content())
    yield store
    store.close()


@pytest.mark.parametrize("route", [("lance", "sqlite"), ("sqlite", "lance", "lance")])
def test_records_arrive_unchanged_to_the_last_bit(source: SqliteStore, tmp_path: Path, route: tuple[str, ...]) -> None:
    before = everything(source)
    stores: list[Store] = [source]
    for step, engine in enumerate(route):
        target = ENGINES[engine](tmp_path / str(step))
        done = copy_store(stores[-1], target)
        assert (done.collections, done.records, done.resumed) == (3, 1_703, 0)
        assert everything(target) == before
        assert target.check() == []
        stores.append(target)
    filtered = stores[-1].search_text("笔记", "第7条", options=SearchOptions({"tags": "x"}))
    assert filtered[0].id == "00007"
    for store in stores[1:]:
        store.close()


def test_progress_counts_copying_and_comparing(source: SqliteStore, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    target = ENGINES["sqlite"](tmp_path / "target")
    copy_store(source, target, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2 * 1_703, 2 * 1_703)
    assert seen == sorted(seen)
    target.close()


class Stops(SqliteStore):
    """Fails at the second batch, like a disk that is full or a process that is killed."""

    calls = 0

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        self.calls += 1
        if self.calls == 2:
            raise StoreError("no room left")
        return super().upsert(records)


def interrupted(source: Store, path: Path) -> Path:
    target = Stops(path)
    with pytest.raises(StoreError, match="no room left"):
        copy_store(source, target)
    target.close()
    return path


def test_an_interrupted_copy_goes_on_where_it_stopped(source: SqliteStore, tmp_path: Path) -> None:
    target = SqliteStore(interrupted(source, tmp_path / "target.db"))
    assert BOOKMARK in [info.name for info in target.collections()]
    done = copy_store(source, target)
    assert 0 < done.resumed < done.records == 1_703
    assert everything(target) == everything(source)
    target.close()


def test_a_source_that_changed_since_is_not_mixed_in(source: SqliteStore, tmp_path: Path) -> None:
    target = SqliteStore(interrupted(source, tmp_path / "target.db"))
    held = everything(target)
    source.upsert([VectorRecord("0", "笔记", None, {}, "new")])
    with pytest.raises(InvalidArgument, match="something else, or the source was changed"):
        copy_store(source, target)
    assert everything(target) == held
    target.close()


def test_a_target_with_something_in_it_is_left_as_it_is(source: SqliteStore, tmp_path: Path) -> None:
    target = SqliteStore(tmp_path / "target.db")
    target.upsert([VectorRecord("mine", "我的", None, {}, "text")])
    with pytest.raises(InvalidArgument, match="not empty: it has the collections '我的'"):
        copy_store(source, target)
    assert [info.name for info in target.collections()] == ["我的"]
    target.close()


def test_an_unfinished_copy_is_not_a_source(source: SqliteStore, tmp_path: Path) -> None:
    half = SqliteStore(interrupted(source, tmp_path / "half.db"))
    target = SqliteStore(tmp_path / "target.db")
    with pytest.raises(InvalidArgument, match="itself an unfinished copy"):
        copy_store(half, target)
    half.close()
    target.close()


class Forgets(SqliteStore):
    """Loses a record, or changes one, and says nothing."""

    def __init__(self, path: Path, change: Callable[[VectorRecord], VectorRecord | None]) -> None:
        super().__init__(path)
        self.change = change

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        kept = [self.change(record) if record.id == "00900" else record for record in records]
        return super().upsert(record for record in kept if record is not None)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: None,
        lambda record: VectorRecord(record.id, record.collection, record.embedding, {}, record.text, record.model),
        lambda record: VectorRecord(
            record.id, record.collection, record.embedding + 1e-4, record.metadata, record.text, record.model
        ),
    ],
    ids=["lost", "metadata", "vector"],
)
def test_a_record_that_does_not_arrive_as_it_was_is_noticed(
    source: SqliteStore, tmp_path: Path, change: Callable[[VectorRecord], VectorRecord | None]
) -> None:
    target = Forgets(tmp_path / "target.db", change)
    with pytest.raises(StoreError, match="the copy differs from its source"):
        copy_store(source, target)
    target.close()


def test_an_empty_store_is_copied_too(tmp_path: Path) -> None:
    one, two = SqliteStore(tmp_path / "one.db"), SqliteStore(tmp_path / "two.db")
    assert copy_store(one, two).records == 0
    assert two.collections() == []
    one.close()
    two.close()


def test_a_copy_that_is_killed_goes_on(source: SqliteStore, tmp_path: Path) -> None:
    code = (
        "import sys; from homing.stores import open_store; from homing.stores.copying import copy_store\n"
        "def show(done, total): print(done, flush=True); sys.stdin.read()\n"
        "copy_store(open_store(sys.argv[1]), open_store(sys.argv[2]), progress=show)"
    )
    url = f"lance://{tmp_path}/target"
    command = ["-c", code, str(source.path), url]
    with start_python(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1000\n"
        process.send_signal(signal.SIGKILL)
    target = LanceStore(tmp_path / "target")
    done = copy_store(source, target)
    assert done.resumed == 1_000
    assert everything(target) == everything(source)
    target.close()


@pytest.mark.parametrize("form", ["sqlite:///{}/没有.db", "{}/nowhere.db", "lance://{}/没有"])
def test_a_store_that_is_not_there_is_not_copied_and_nothing_is_made(form: str, tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["store", "copy", form.format(tmp_path), f"lance://{tmp_path}/x"])
    assert isinstance(run.exception, NotFound)
    assert "check the address" in str(run.exception)
    assert list(tmp_path.iterdir()) == []


def test_the_command_copies_and_says_what_it_did(source: SqliteStore, tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["store", "copy", f"sqlite:///{source.path}", f"lance://{tmp_path}/x", "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["records"] == 1_703
    again = CliRunner().invoke(app, ["store", "copy", f"sqlite:///{source.path}", f"sqlite:///{tmp_path}/y.db"])
    assert "1703 records in 3 collections copied" in again.output
    refused = CliRunner().invoke(app, ["store", "copy", f"sqlite:///{source.path}", f"sqlite:///{tmp_path}/y.db"])
    assert isinstance(refused.exception, InvalidArgument)
