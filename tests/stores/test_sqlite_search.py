"""Searching the copy in memory: as good as comparing everything, and never behind the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from homing.records import VectorRecord
from homing.stores import SearchOptions
from homing.stores.sqlite import SqliteStore, reading, segments, words
from homing.vectors import Matrix, Vector, as_vector, normalise


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    opened.close()


def gaussian(rows: int, width: int = 64, seed: int = 1) -> Matrix:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


def clustered(rows: int, width: int = 64) -> Matrix:
    """Like the vectors of a real model: many near duplicates, a few dimensions much larger than the others."""
    made = np.random.default_rng(2)
    centres = made.standard_normal((rows // 50, width))
    found = centres[made.integers(0, len(centres), rows)] + 0.08 * made.standard_normal((rows, width))
    found[:, :3] *= 6
    return found.astype(np.float32)


def lopsided(rows: int, width: int = 64) -> Matrix:
    """The worst for rounding: one component that sets the scale, and all others too small for it and on one side."""
    found = np.abs(np.random.default_rng(4).standard_normal((rows, width))) * 0.002 + 0.002
    found[:, 0] = 1
    return found.astype(np.float32)


def records(rows: Matrix, start: int = 0, collection: str = "c") -> list[VectorRecord]:
    return [
        VectorRecord(f"{number:06d}", collection, row, {"mod": number % 100, "even": number % 2 == 0}, "", "m")
        for number, row in enumerate(rows, start=start)
    ]


def brute_force(rows: Matrix, query: Vector, allowed: Iterable[int], limit: int = 10) -> list[str]:
    kept = np.array(list(allowed))
    cosines = normalise(rows[kept]).astype(np.float64) @ as_vector(query).astype(np.float64)
    return [f"{kept[place]:06d}" for place in np.argsort(-cosines, kind="stable")[:limit]]


def names(store: SqliteStore, query: Vector, limit: int = 10, pairs: Mapping[str, object] | None = None) -> list[str]:
    return [match.id for match in store.search("c", query, limit, SearchOptions(pairs or {}))]


@pytest.mark.slow
@pytest.mark.parametrize("make", [gaussian, clustered, lopsided])
def test_the_answer_is_that_of_comparing_everything(store: SqliteStore, make: Callable[[int], Matrix]) -> None:
    rows = make(5_000)
    store.upsert(records(rows))
    wanted: tuple[dict[str, object], ...] = ({}, {"mod": 7}, {"even": True}, {"mod": 8, "even": True})
    for pairs in wanted:
        allowed = [
            number
            for number in range(len(rows))
            if pairs.get("mod", number % 100) == number % 100
            and pairs.get("even", number % 2 == 0) == (number % 2 == 0)
        ]
        for query in rows[::250] + 0.3 * rows[100::250]:
            assert names(store, query, pairs=pairs) == brute_force(rows, query, allowed)


def test_distances_are_exact(store: SqliteStore) -> None:
    rows = gaussian(3000)
    store.upsert(records(rows))
    units = rows.astype(np.float64) / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    query = rows[5] + rows[6]
    for match in store.search("c", query, 50):
        exact = 1 - units[int(match.id)] @ query / np.linalg.norm(query)
        assert match.distance == pytest.approx(exact, abs=1e-6)


def test_a_record_is_its_own_nearest_at_distance_zero(store: SqliteStore) -> None:
    rows = gaussian(2000)
    store.upsert(records(rows))
    for number in range(0, 2000, 200):
        [match] = store.search("c", rows[number], 1)
        assert match.id == f"{number:06d}"
        assert match.distance == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_another_store_follows_thousands_of_small_changes(store: SqliteStore, path: Path) -> None:
    """Small segments are merged underneath a reader that has seen some of them."""
    other = SqliteStore(path)
    made = np.random.default_rng(3)
    rows = gaussian(400)
    alive: dict[str, VectorRecord] = {}
    for number in range(250):
        chosen = records(rows[number : number + 1], start=int(made.integers(0, 120)))
        store.upsert(chosen)
        alive[chosen[0].id] = chosen[0]
        if number % 4 == 3:
            gone = sorted(alive)[int(made.integers(0, len(alive)))]
            store.delete("c", [gone])
            del alive[gone]
        if number % int(made.integers(1, 40)) == 0:
            assert sorted(match.id for match in other.search("c", rows[0], 1000)) == sorted(alive)
    kept = np.stack([np.asarray(alive[name].embedding) for name in sorted(alive)])
    for query in rows[300:310]:
        expected = [sorted(alive)[int(place)] for place in brute_force(kept, query, range(len(kept)))]
        assert names(store, query) == names(other, query) == expected
    with store.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM segments").get <= segments.SMALL_SEGMENTS + 1
    assert store.check() == []
    other.close()


def test_removed_rows_are_forgotten_once_they_outweigh_the_others(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "DEAD_AT_LEAST", 100)
    other = SqliteStore(path)
    rows = gaussian(1000)
    store.upsert(records(rows))
    for _ in range(4):
        for start in range(0, 1000, 250):
            store.upsert(records(rows[start : start + 250], start=start))
            assert names(other, rows[start]) == brute_force(rows, rows[start], range(1000))
    store.delete("c", [f"{number:06d}" for number in range(900)])
    assert sorted(names(other, rows[0], 100)) == [f"{number:06d}" for number in range(900, 1000)]
    with store.database.reading() as connection:
        held = connection.execute("SELECT sum(rows) FROM segments").get
        epoch = connection.execute("SELECT epoch FROM matrices").get
    assert held <= 300
    assert epoch >= 3
    assert store.check() == []
    other.close()


def test_memory_is_that_of_one_byte_per_dimension(store: SqliteStore) -> None:
    store.upsert(records(gaussian(5000)))
    store.search("c", gaussian(1)[0])
    assert store.memory_bytes == 5000 * (64 + 16)


def test_memory_is_bounded_by_letting_go_of_what_was_not_searched_lately(path: Path) -> None:
    one = 1000 * (64 + 16)
    store = SqliteStore(path, memory=2 * one)
    rows = gaussian(1000)
    for name in ("a", "b", "c", "d"):
        store.upsert(records(rows, collection=name))
    for _ in range(2):
        for name in ("a", "b", "c", "d"):
            assert store.search(name, rows[3], 1)[0].id == "000003"
            assert store.memory_bytes <= 2 * one
    store.close()


def test_asking_for_collections_that_do_not_exist_costs_no_memory(store: SqliteStore) -> None:
    for number in range(50):
        assert store.search(f"nowhere {number}", gaussian(1)[0]) == []
    assert store.memory_bytes == 0


def test_a_filter_that_was_asked_before_sees_what_others_changed(store: SqliteStore, path: Path) -> None:
    rows = gaussian(20)
    made = records(rows)
    store.upsert(made)
    asked = {"mod": 3, "even": False}
    assert names(store, rows[3], pairs=asked) == names(store, rows[3], pairs=asked) == ["000003"]
    other = SqliteStore(path)
    other.upsert([replace(made[5], metadata=asked), replace(made[3], metadata={"mod": 3, "even": True})])
    other.close()
    assert names(store, rows[3], pairs=asked) == ["000005"]
    assert names(store, rows[3], pairs={"mod": 3}) == ["000003", "000005"]


def test_a_thousand_equal_vectors_are_told_apart_by_id(store: SqliteStore) -> None:
    rows = np.repeat(gaussian(3), [1000, 1, 1], axis=0)
    store.upsert(reversed(records(rows)))
    assert names(store, rows[0], 25) == [f"{number:06d}" for number in range(25)]


def test_an_emptied_collection_takes_another_model(store: SqliteStore) -> None:
    store.upsert(records(gaussian(10)))
    store.delete("c", [f"{number:06d}" for number in range(10)])
    store.upsert([VectorRecord("new", "c", np.ones(3, np.float32), {}, "", "another@3")])
    assert names(store, np.ones(3, np.float32)) == ["new"]
    assert store.collections()[0].model == "another@3"
    assert store.check() == []


def test_the_words_of_many_collections_keep_apart(store: SqliteStore) -> None:
    for number in range(70):
        own = "own" + "abcdefghij"[number // 10] + "abcdefghij"[number % 10]
        store.upsert([VectorRecord(f"{n}", f"c{number}", None, {}, f"共同 {own}") for n in range(3)])
    assert len(store.search_text("c1", "共同", 100)) == 3
    assert store.search_text("c1", "owndd") == []
    assert store.drop("c33") == 3
    assert len(store.search_text("c1", "ownab")) == 3
    assert store.search_text("c33", "共同") == []
    assert store.check() == []


def test_the_store_says_what_its_file_holds(store: SqliteStore) -> None:
    store.upsert(
        VectorRecord(found.id, "c", found.embedding, found.metadata, "一些文字 some text", "m")
        for found in records(gaussian(2000))
    )
    sizes = store.sizes()
    assert sizes["vectors"] > 2000 * 64 * 4
    assert 2000 * 64 <= sizes["codes"] < sizes["vectors"]
    assert min(sizes.values()) > 0
    store.database.close()
    assert sum(sizes.values()) <= store.path.stat().st_size


def test_the_store_says_what_runs_it(store: SqliteStore) -> None:
    assert store.versions()["sqlite"].startswith("3.")
    assert store.versions()["sqlite-vec"].startswith("v")


def test_one_strange_vector_does_not_spoil_the_others(store: SqliteStore) -> None:
    """A vector with a single component is coded coarsely; the candidates among the others stay few, and right."""
    rows = gaussian(5000)
    rows[7] = 0
    rows[7, 3] = 1
    store.upsert(records(rows))
    for number in range(0, 5000, 500):
        assert names(store, rows[number]) == brute_force(rows, rows[number], range(5000))
    assert names(store, rows[7], 1) == ["000007"]


def test_a_filter_that_every_record_passed_still_filters_when_another_comes(store: SqliteStore) -> None:
    rows = normalise(gaussian(30))
    every = SearchOptions({"project": "one"})
    store.write(replace(one, metadata={"project": "one"}, text="lamp") for one in records(rows))
    for _ in range(2):
        assert (
            len(store.search_vector("c", rows[0], 40, every))
            == len(store.search_words("c", "lamp", 40, every).found)
            == 30
        )
    store.write([VectorRecord("other", "c", rows[0], {"project": "two"}, "lamp", "m")])
    assert "other" in {one.id for one in store.search_vector("c", rows[0], 40)}
    assert "other" not in {one.id for one in store.search_vector("c", rows[0], 40, every)}
    assert "other" not in {one.id for one in store.search_words("c", "lamp", 40, every).found}


def test_a_filter_that_nearly_every_record_passes_is_not_taken_for_a_rare_one(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: else every search would read the keys of all of them."""
    for module in (reading, words):
        monkeypatch.setattr(module, "NAMED", 100)
    monkeypatch.setattr(reading, "COUNTED", 20)
    store.upsert(VectorRecord(f"{n}", "c", None, {"project": "p"}, f"第{n}段 lamp") for n in range(500))
    store.upsert([VectorRecord("other", "c", None, {"project": "q"}, "lamp")])
    monkeypatch.setattr(reading, "matching", None)
    found = store.search_words("c", "lamp", 5, SearchOptions({"project": "p"})).found
    assert len(found) == 5
    assert "other" not in {one.id for one in found}
