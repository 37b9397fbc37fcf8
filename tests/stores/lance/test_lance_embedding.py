"""Texts are written and embedded by several processes, which may be killed: a vector is always one of its text."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homing.database import Transaction
from homing.database.sqlite import SqliteDatabase
from homing.errors import InvalidArgument
from homing.stores.lance import LanceStore
from homing.stores.lance.catalog import Catalog
from homing.stores.lance.database import Table
from homing.stores.store import NewVector
from homing.testing.store_contract import MODEL, WIDTH, ids, record, vector
from tests.effort import SOAK, times
from tests.stores.lance import rivals
from tests.stores.lance.embedding import NEW, NEW_WIDTH, embed, made_of, models, new

ENDLESS = """
import sys
from homing.stores.lance import LanceStore
from tests.stores.lance.embedding import NEW, NEW_WIDTH, embed
from homing.testing.store_contract import MODEL, WIDTH, record

store = LanceStore(sys.argv[1])
for turn in range(1_000):
    store.write([record(f"{number:02d}", text=f"词{number} turn{turn}") for number in range(5)])
    print(turn, "written", flush=True)
    models = [(MODEL, WIDTH), (NEW, NEW_WIDTH)]
    for model, width in models[:: 1 if turn % 2 else -1]:
        embed(store, model, width)
        print(turn, "embedded", flush=True)
        store.serve("things", model)
        print(turn, "served", flush=True)
    store.discard("things", models[0 if turn % 2 else 1][0])
    print(turn, "discarded", flush=True)
"""


def agrees(store: LanceStore) -> None:
    """Texts, words and vectors are of one another, for every model."""
    assert store.check() == []
    records = list(store.records("things"))
    for one in records:
        assert one.id in ids(store.search_text("things", one.text))
    for model, width in ((MODEL, WIDTH), (NEW, NEW_WIDTH)):
        if model not in {info.model for info in store.models("things")}:
            continue
        store.serve("things", model)
        held = [one for one in store.records("things") if one.embedding is not None]
        for one in held:
            np.testing.assert_allclose(one.embedding, made_of(one.text, width), atol=1e-6)  # type: ignore[arg-type]
            assert store.search_vector("things", made_of(one.text, width), 1)[0].id == one.id
        assert {one.id for one in held} == {one.id for one in records} - set(store.missing("things", model))


def write_and_delete(folder: Path, turns: int) -> None:
    store = LanceStore(folder)
    for turn in range(turns):
        names = [f"{number:02d}" for number in range(turn % 7, 30, 3)]
        store.write([record(name, text=f"词{name} turn{turn}", turn=turn) for name in names])
        if turn % 5 == 4:
            store.delete("things", names[:2])
    store.close()


@pytest.mark.slow
def test_one_who_writes_and_two_who_embed_leave_no_vector_of_another_text(folder: Path) -> None:
    LanceStore(folder).write([record("first", text="第一个")])
    turns = times(8, in_full=25)
    with rivals.started("embed_again_and_again", folder, turns) as other, ThreadPoolExecutor(2) as threads:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        here = threads.submit(rivals.embed_again_and_again, str(folder), str(turns))
        threads.submit(write_and_delete, folder, turns).result()
        here.result()
        assert other.wait(300) == 0
    store = LanceStore(folder)
    agrees(store)
    embed(store, MODEL, WIDTH)
    embed(store, NEW, NEW_WIDTH)
    assert store.missing("things", MODEL) == store.missing("things", NEW) == []
    agrees(store)
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 2, 4, 5, 6, 7, 9, 12, 14] if SOAK else [5])
def test_a_process_that_is_killed_while_it_changes_models_leaves_whole_steps(folder: Path, lines: int) -> None:
    seen: list[str] = []
    command = [sys.executable, "-c", ENDLESS, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            seen.append(line.strip())
            if len(seen) == lines:
                break
        process.kill()
        seen += process.stdout.read().split("\n")[:-1]
    store = LanceStore(folder)
    agrees(store)
    turn = int([line for line in seen if line.endswith("written")][-1].split()[0])
    assert len(store.ids("things")) == 5
    assert {int(text.rsplit("turn")[1]) for text in store.texts("things", store.ids("things")).values()} <= {
        turn,
        turn + 1,
    }
    embed(store, MODEL, WIDTH)
    store.serve("things", MODEL)
    assert len(store.search_vector("things", vector(1), 10)) == 5
    agrees(store)
    store.close()


class Killed(BaseException):
    """Ends a call where it stands."""


@pytest.mark.parametrize("step", [(Table, "add_columns"), (Table, "replace"), (Catalog, "end")])
@pytest.mark.parametrize("undoes", [True, False])
def test_first_vectors_that_are_cut_short_are_undone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: tuple[type, str], undoes: bool
) -> None:
    store = LanceStore(folder)
    store.write([record("a", text="打开灯"), record("b", text="关闭灯")])
    owner, name = step
    real = getattr(owner, name)

    def dying(*args: Any, **options: Any) -> Any:
        if owner is Table:
            real(*args, **options)
        raise Killed

    with monkeypatch.context() as patch:
        if not undoes:
            # A killed process undoes nothing itself.
            patch.setattr(Catalog, "undo", lambda *_: None)
        patch.setattr(owner, name, dying)
        with pytest.raises(Killed):
            store.put_vectors("things", MODEL, [new("a", "打开灯", WIDTH)])
    again = LanceStore(folder)
    assert again.models("things") == []
    assert again.missing("things", MODEL) == ["a", "b"]
    assert ids(again.search_text("things", "打开")) == ["a"]
    assert again.check() == []
    assert again.put_vectors("things", NEW, [new("a", "打开灯")]) == {"a"}
    assert models(again) == [(NEW, 1, True)]
    again.close()


def test_a_new_model_that_is_cut_short_leaves_the_answers_of_the_old_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LanceStore(folder)
    store.write([record("a", 1, text="打开灯")])

    def dying(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "undo", lambda *_: None)
        patch.setattr(Table, "upsert", dying)
        with pytest.raises(Killed):
            store.write([record("a", 1, text="打开灯", model="another@8")])
    again = LanceStore(folder)
    assert models(again) == [(MODEL, 1, True)]
    assert ids(again.search("things", vector(1))) == ["a"]
    again.close()


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ({"text": "另一个"}, "a text is not the one that was written"),
        ({"words": "另 一 个"}, "found by other words"),
        ({"text_hash": "0" * 32}, f"vector of {MODEL!r} was made for another text"),
        ({"hash": None}, f"vector of {MODEL!r} is lost"),
        ({"hash": "0" * 32}, f"vector of {MODEL!r} was made for another text"),
    ],
)
def test_what_does_not_belong_together_is_found(folder: Path, damage: dict[str, Any], finding: str) -> None:
    import lancedb

    store = LanceStore(folder)
    store.write([record("a", 1, text="打开灯"), record("b", 1, text="关闭灯")])
    assert store.check() == []
    [path] = folder.glob("c-things-*")
    table = lancedb.connect(folder).open_table(path.name.removesuffix(".lance"))
    [hashes] = [name for name in table.schema.names if name.startswith("hash_")]
    table.update(where="id = 'a'", values={hashes if name == "hash" else name: value for name, value in damage.items()})
    assert any(finding in one and "1 times in collection 'things'" in one for one in store.check())
    if "hash" in damage:
        assert store.missing("things", MODEL) == ["a"]
        assert store.put_vectors("things", MODEL, [NewVector("a", "0" * 32, vector(1))]) == set()
        assert store.put_vectors("things", MODEL, [new("a", "打开灯", WIDTH)]) == {"a"}
        assert store.check() == []
    store.close()


def test_a_transaction_is_refused(store: LanceStore, tmp_path: Path) -> None:
    def work(transaction: Transaction) -> None:
        for call in (
            lambda: store.write([record("a", 1)], transaction),
            lambda: store.delete("things", ["a"], transaction),
            lambda: store.serve("things", "m", transaction),
        ):
            with pytest.raises(InvalidArgument, match="LanceDB cannot join a transaction"):
                call()

    assert store.database is None
    rows = SqliteDatabase(tmp_path / "rows.db")
    rows.write(work)
    rows.close()
    assert store.collections() == []
