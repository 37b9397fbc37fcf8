"""A store stays fast by itself: files and versions stay few, indexes come when they pay, and nothing is missed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homing.records import VectorRecord
from homing.stores.lance import LanceStore
from homing.stores.lance.rows import Space, serving
from homing.stores.lance.upkeep import Limits
from homing.stores.store import SearchOptions
from homing.testing.store_contract import ids, record, vector
from homing.vectors import Matrix, normalise

ROWS, WIDTH = 6_000, 32
INDEXED = Limits(vectors=3_000, unindexed=200, unindexed_share=0.0, quiet=0.01)


def files(folder: Path, kind: str) -> int:
    return len(list(folder.glob(f"c-*/{kind}")))


def settle(store: LanceStore) -> None:
    """Wait until nothing is due."""
    worker = store._upkeep._worker
    if worker is not None:
        worker.join()


def space(store: LanceStore) -> Space:
    table = store._catalog.table("things")
    assert table is not None
    found = serving(table.schema)
    assert found is not None
    return found


def clustered(count: int, seed: int) -> Matrix:
    """Vectors as texts have them: in heaps."""
    chance = np.random.default_rng(seed)
    heaps = np.random.default_rng(0).standard_normal((120, WIDTH))
    return normalise(heaps[chance.integers(0, 120, count)] + 0.6 * chance.standard_normal((count, WIDTH)))


def made(number: int, row: Any) -> VectorRecord:
    metadata = {"half": number % 2, "rare": number % 200, "tags": [f"t{number % 7}", "all"]}
    return VectorRecord(f"{number:05d}", "things", row, metadata, f"第{number}号 record w{number % 50}", "m@32")


@pytest.fixture(scope="module")
def rows() -> Matrix:
    return clustered(ROWS, 1)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, rows: Matrix) -> Iterator[LanceStore]:
    store = LanceStore(tmp_path_factory.mktemp("large") / "lance", limits=INDEXED)
    for start in range(0, ROWS, 1_500):
        store.upsert([made(number, rows[number]) for number in range(start, start + 1_500)])
    settle(store)
    yield store
    store.close()


def test_many_small_writes_leave_few_files_and_versions(folder: Path) -> None:
    limits = Limits(files=8, versions=12, keep=timedelta(milliseconds=1), quiet=0.0, patience=0.1)
    store = LanceStore(folder, limits=limits)
    for number in range(60):
        store.upsert([record(f"{number:02d}", 1, number / 100, text=f"词{number}")])
    store.close()
    assert files(folder, "data/*.lance") <= 2 * limits.files
    assert files(folder, "_versions/*.manifest") <= 2 * limits.versions
    again = LanceStore(folder)
    assert len(list(again.records("things"))) == 60
    assert ids(again.search_text("things", "词7"))[0] == "07"
    again.close()


def test_deletions_alone_are_tidied_up_too(folder: Path) -> None:
    limits = Limits(versions=10, keep=timedelta(milliseconds=1), quiet=0.0)
    store = LanceStore(folder, limits=limits)
    store.upsert([record(f"{number:02d}", 1) for number in range(40)])
    for number in range(39):
        assert store.delete("things", [f"{number:02d}"]) == 1
        settle(store)
    assert files(folder, "_versions/*.manifest") <= limits.versions + 5
    assert ids(store.search("things", vector(1))) == ["39"]
    store.close()


def test_a_large_collection_gets_its_indexes_and_a_small_one_does_not(large: LanceStore) -> None:
    table = large._catalog.table("things")
    assert table is not None
    indexed = {index.columns[0] for index in table.handle.list_indices()}
    assert indexed == {"id", "attributes", "words", space(large).column}
    assert space(large).probes > 0
    large.upsert([record("a", 1, collection="small")])
    small = large._catalog.table("small")
    assert small is not None
    assert {index.columns[0] for index in small.handle.list_indices()} == {"words"}


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ({}, lambda number: True),
        ({"half": 1}, lambda number: number % 2 == 1),
        ({"rare": 7}, lambda number: number % 200 == 7),
        ({"rare": [7, 9, 11]}, lambda number: number % 200 in (7, 9, 11)),
        ({"tags": "t3", "half": 0}, lambda number: number % 7 == 3 and number % 2 == 0),
    ],
)
def test_the_index_finds_what_a_full_scan_finds(large: LanceStore, rows: Matrix, wanted: Any, passes: Any) -> None:
    eligible = np.array([number for number in range(ROWS) if passes(number)])
    shares = []
    for query in clustered(40, 2):
        found = large.search("things", query, options=SearchOptions(wanted))
        truth = eligible[np.argsort(-(rows[eligible] @ query), kind="stable")[:10]]
        assert len(found) == 10
        shares.append(len({int(match.id) for match in found} & set(truth.tolist())) / 10)
        assert [match.distance for match in found] == sorted(match.distance or 0 for match in found)
    assert np.mean(shares) >= 0.98


def test_distances_are_exact_although_the_index_rounds(large: LanceStore, rows: Matrix) -> None:
    [nearest] = large.search("things", rows[17], limit=1)
    assert nearest.id == "00017"
    assert nearest.distance == pytest.approx(0, abs=1e-7)
    for match in large.search("things", rows[17], limit=30):
        exact = 1 - float(rows[int(match.id)].astype(np.float64) @ rows[17].astype(np.float64))
        assert match.distance == pytest.approx(max(0, exact), abs=1e-9)


def test_what_no_index_has_yet_is_found(large: LanceStore) -> None:
    fresh = np.zeros(WIDTH, np.float32)
    fresh[0] = 1
    large.upsert([VectorRecord("fresh", "things", fresh, {"half": 1, "new": True}, "刚刚写下的便条 C++ 🚀", "m@32")])
    try:
        assert ids(large.search("things", fresh))[0] == "fresh"
        assert ids(large.search("things", fresh, options=SearchOptions({"new": True}))) == ["fresh"]
        for query in ("便条", "c++", "🚀", "剛剛"):
            assert ids(large.search_text("things", query))[0] == "fresh"
        assert ids(large.search_text("things", "便条", options=SearchOptions({"half": 1}))) == ["fresh"]
        assert [found.text for found in large.get("things", ["fresh"])] == ["刚刚写下的便条 C++ 🚀"]
    finally:
        large.delete("things", ["fresh"])
    assert large.search_text("things", "便条") == []


def test_a_replaced_record_leaves_the_index_of_its_old_words(large: LanceStore, rows: Matrix) -> None:
    large.upsert([VectorRecord("00042", "things", rows[42], {}, "换了内容", "m@32")])
    try:
        assert ids(large.search_text("things", "换了"))[0] == "00042"
        assert "00042" not in ids(large.search_text("things", "42号", limit=50))
        assert large.search("things", rows[42], options=SearchOptions({"rare": 42}))[0].id != "00042"
    finally:
        large.upsert([made(42, rows[42])])


def test_words_are_found_after_the_index_took_them_in(large: LanceStore) -> None:
    assert ids(large.search_text("things", "第4321号"))[0] == "04321"
    assert {int(name) % 50 for name in ids(large.search_text("things", "w33"))} == {33}


def test_an_index_that_is_built_while_others_write_is_used(folder: Path, rows: Matrix) -> None:
    store = LanceStore(folder, limits=Limits(vectors=1_000, quiet=0.0, patience=0.0))
    for start in range(0, ROWS // 2, 100):
        store.upsert([made(number, rows[number]) for number in range(start, start + 100)])
    settle(store)
    assert space(store).probes > 0
    store.close()


def test_vectors_that_an_index_cannot_tell_apart_are_still_scanned_exactly(folder: Path) -> None:
    store = LanceStore(folder, limits=Limits(vectors=300, quiet=0.0))
    store.upsert([record(f"{number:04d}", 1, number * 1e-5, text="x") for number in range(600)])
    store.close()
    again = LanceStore(folder)
    assert ids(again.search("things", vector(1), limit=3)) == ["0000", "0001", "0002"]
    again.close()


def test_reading_all_records_survives_tidying_up_meanwhile(folder: Path) -> None:
    store = LanceStore(folder, limits=Limits(files=2, versions=4, keep=timedelta(milliseconds=1), quiet=0.0))
    store.upsert([record(f"{number:04d}", 1, text=f"{number}") for number in range(1_200)])
    listed = store.records("things")
    seen = [next(listed).id]
    for number in range(12):
        store.upsert([record(f"{number:04d}", 0, 1, text="changed")])
        settle(store)
    seen += [found.id for found in listed]
    assert seen == [f"{number:04d}" for number in range(1_200)]
    store.close()
