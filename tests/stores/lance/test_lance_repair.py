"""What is derived is made anew from the texts, also in LanceDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from homing.database.sqlite import SqliteDatabase
from homing.doctor.repairing import repair
from homing.engine import Engine
from homing.records import VectorRecord
from homing.stores.lance import LanceStore
from homing.stores.lance.database import Table
from homing.stores.lance.rows import serving
from homing.testing.fake import FakeEmbedder


@pytest.fixture
def engine(store: LanceStore, tmp_path: Path) -> Iterator[Engine]:
    made = Engine(store, FakeEmbedder(), database=SqliteDatabase(tmp_path / "rows.db"), background=False)
    texts = [VectorRecord(f"{n:02d}", "c", None, {"n": n}, f"灯塔 lamp {chr(97 + n)}word") for n in range(12)]
    made.collection("c").write(texts)
    assert made.flush()
    assert store.check() == []
    yield made
    made.close()
    made.database.close()


def table_of(store: LanceStore) -> Table:
    table = store._catalog.table("c")
    assert table is not None
    return table


def found(store: LanceStore, word: str) -> list[str]:
    return [one.id for one in store.search_words("c", word, 5).found]


def test_other_words_lost_vectors_and_doubled_rows_are_mended(engine: Engine, store: LanceStore) -> None:
    table = table_of(store)
    space = serving(table.schema)
    assert space is not None
    rows = table.handle.to_arrow()
    table.handle.update(where="id = '03'", values={"words": "nothing of it"})
    table.handle.update(where="id = '04'", values={space.hashes: "0" * 32})
    table.handle.add(rows.filter(np.array(rows["id"].to_pylist()) == "07"))
    assert len(store.check()) == 3
    assert found(store, "dword") == []
    done = repair(engine)
    assert (len(done.found), done.left, done.texts, done.vectors_removed, done.waiting) == (3, [], 12, 1, 1)
    assert engine.flush()
    assert store.check() == []
    assert table.count() == 12
    assert found(store, "dword") == ["03"]
    assert found(store, "hword") == ["07"]
    assert store.pending("c") == 0


def test_a_damaged_text_is_named_and_left(engine: Engine, store: LanceStore) -> None:
    table_of(store).handle.update(where="id = '05'", values={"text": "another"})
    done = repair(engine)
    assert any("not the one that was written" in one for one in done.left)
    assert found(store, "dword") == ["03"]


def test_the_indexes_are_made_anew(engine: Engine, store: LanceStore) -> None:
    handle = table_of(store).handle
    [before] = handle.list_indices()
    files = {one.name for one in (store.tables.address.folder or Path()).glob("c-*/_indices/*")}
    assert store.rebuild().texts == 12
    [after] = handle.list_indices()
    assert after.columns == before.columns == ["words"]
    assert after.num_unindexed_rows == 0
    assert {one.name for one in (store.tables.address.folder or Path()).glob("c-*/_indices/*")} - files
