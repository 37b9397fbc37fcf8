"""Many vectors: an index is built in the background, is right, and never makes an answer short."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
import pytest

from homing.records import VectorRecord
from homing.stores.postgres import indexing, vector_search
from homing.stores.postgres.store import PostgresStore
from homing.stores.store import SearchOptions
from homing.vectors import Matrix, Vector
from tests.conftest import Database

pytestmark = pytest.mark.slow
Opened = Callable[..., PostgresStore]

WIDTH = 96
MANY = 5_000


@pytest.fixture(autouse=True)
def small_is_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same road with a tenth of the load."""
    monkeypatch.setattr(indexing, "WORTHWHILE", 3_000)
    monkeypatch.setattr(vector_search, "COMPARED", 4)


def unit(rows: npt.NDArray[np.floating[Any]]) -> Matrix:
    made: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return made


@pytest.fixture(scope="module")
def schema() -> str:
    return "homing_indexed"


@pytest.fixture(scope="module")
def rows() -> Matrix:
    made = np.random.default_rng(11)
    topics = made.standard_normal((200, WIDTH))
    return unit(topics[made.integers(0, 200, MANY)] + 0.5 * made.standard_normal((MANY, WIDTH)))


def record(number: int, row: Vector, collection: str = "many", **metadata: object) -> VectorRecord:
    return VectorRecord(f"{number:06d}", collection, row, metadata, "", f"m@{WIDTH}")


@pytest.fixture
def filled(opened: Opened, rows: Matrix) -> PostgresStore:
    """A store with many vectors and an index, made once for the tests of this file."""
    store = opened()
    if not store.collections():
        store.upsert(record(n, row, rare=n % 500 == 7, third=n % 3) for n, row in enumerate(rows))
        store.upsert(record(n, row, "few") for n, row in enumerate(rows[:50]))
    return store


def indexed(admin: psycopg.Connection) -> bool:
    return admin.execute("SELECT bool_and(indexed) FROM spaces").fetchone() == (True,)


def wait_for_index(admin: psycopg.Connection) -> None:
    until = time.monotonic() + 300
    while not indexed(admin):
        assert time.monotonic() < until, "no index was built"
        time.sleep(0.05)


def scans(admin: psycopg.Connection) -> int:
    """How often the index was used, by sessions that have ended."""
    row = admin.execute(
        "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelid = 'vectors_1_by_nearness'::regclass"
    ).fetchone()
    return int(row[0]) if row else 0


def nearest(rows: Matrix, query: Vector, among: npt.NDArray[np.int64] | None = None) -> list[str]:
    chosen = np.arange(len(rows)) if among is None else among
    return [f"{number:06d}" for number in chosen[np.argsort(-(rows[chosen] @ query), kind="stable")[:10]]]


def recall(found: Iterator[tuple[set[str], set[str]]]) -> float:
    return float(np.mean([len(got & wanted) / len(wanted) for got, wanted in found]))


def test_an_index_is_built_in_the_background_once_writes_pause(
    filled: PostgresStore, admin: psycopg.Connection
) -> None:
    wait_for_index(admin)
    assert admin.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'vectors_1_by_nearness'::regclass"
    ).fetchone() == (True,)


def test_the_nearest_are_found_by_the_index(filled: PostgresStore, admin: psycopg.Connection, rows: Matrix) -> None:
    wait_for_index(admin)
    queries = unit(np.random.default_rng(12).standard_normal((60, WIDTH)))
    queries[:40] = unit(rows[:40] + 0.1 * queries[:40])
    answers = ((filled.search("many", query), query) for query in queries)
    assert recall(({one.id for one in found}, set(nearest(rows, query))) for found, query in answers) >= 0.98
    distances = [match.distance for match in filled.search("many", queries[0], limit=50)]
    assert len(distances) == 50
    assert distances == sorted(distances, key=lambda distance: distance or 0)
    filled.close()
    until = time.monotonic() + 120
    while not scans(admin):
        assert time.monotonic() < until, "the index was not used"
        time.sleep(0.1)
    assert distances[0] == pytest.approx(1 - float((rows @ queries[0]).max()), abs=1e-6)


@pytest.mark.parametrize(("key", "value", "step", "first"), [("rare", True, 500, 7), ("third", 1, 3, 1)])
def test_a_filter_finds_all_that_it_asks_for(
    filled: PostgresStore,
    admin: psycopg.Connection,
    rows: Matrix,
    key: str,
    value: object,
    step: int,
    first: int,
) -> None:
    wait_for_index(admin)
    among = np.arange(first, MANY, step)
    found = []
    for query in unit(np.random.default_rng(13).standard_normal((15, WIDTH))):
        matches = filled.search("many", query, options=SearchOptions({key: value}))
        assert len(matches) == min(10, len(among))
        assert all(match.metadata[key] == value for match in matches)
        found.append(({match.id for match in matches}, set(nearest(rows, query, among))))
    assert recall(iter(found)) >= 0.98
    assert filled.search("many", rows[0], options=SearchOptions({key: "nothing"})) == []


def test_a_small_collection_beside_a_large_one_is_searched_exactly(
    filled: PostgresStore, admin: psycopg.Connection, rows: Matrix
) -> None:
    wait_for_index(admin)
    for query in unit(np.random.default_rng(14).standard_normal((10, WIDTH))):
        assert [match.id for match in filled.search("few", query)] == nearest(rows[:50], query)


def test_what_is_written_after_the_index_is_found_and_equal_distances_come_by_id(
    filled: PostgresStore, admin: psycopg.Connection, rows: Matrix
) -> None:
    wait_for_index(admin)
    lonely = unit(np.full((1, WIDTH), -1.0) + np.eye(1, WIDTH))[0]
    names = range(900_000, 900_060)
    filled.upsert(record(number, lonely) for number in reversed(names))
    found = filled.search("many", lonely, limit=7)
    assert [match.id for match in found] == [f"{number:06d}" for number in names[:7]]
    filled.delete("many", [f"{number:06d}" for number in names])
    assert filled.search("many", lonely, limit=1)[0].id < "900000"


def test_a_build_that_was_interrupted_is_done_again(
    filled: PostgresStore, admin: psycopg.Connection, rows: Matrix
) -> None:
    wait_for_index(admin)
    admin.execute("UPDATE spaces SET indexed = false")
    admin.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'vectors_1_by_nearness'::regclass")
    query = unit(np.ones((1, WIDTH)))[0]
    assert [match.id for match in filled.search("many", query)] == nearest(rows, query)
    filled.build_indexes()
    assert indexed(admin)
    assert admin.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'vectors_1_by_nearness'::regclass"
    ).fetchone() == (True,)


@pytest.mark.parametrize(
    ("cache", "asked", "said"),
    [("2MB", 0, "no longer fits into maintenance_work_mem"), ("2TB", 10**9, "building the index in one process")],
)
def test_an_index_is_built_where_memory_is_short_and_the_log_says_so(
    filled: PostgresStore,
    opened: Opened,
    database: Database,
    admin: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    cache: str,
    asked: int,
    said: str,
) -> None:
    wait_for_index(admin)
    monkeypatch.setattr(indexing, "LEAST_MB", 1)
    monkeypatch.setattr(indexing, "NODE_BYTES", asked)
    admin.execute("UPDATE spaces SET indexed = false WHERE id = 1")
    admin.execute("ALTER TABLE vectors_1 SET (parallel_workers = 2)")
    opened(f"{database.url}?options=-c%20effective_cache_size%3D{cache}").build_indexes()
    assert said in caplog.text
    assert indexed(admin)


def test_whoever_wrote_many_leaves_an_index_behind_and_whoever_only_looked_does_not_wait(
    opened: Opened, admin: psycopg.Connection
) -> None:
    made = unit(np.random.default_rng(15).standard_normal((3_500, 48)))
    writer = opened()
    writer.upsert(VectorRecord(f"{n}", "wide", row, {}, "", "other@48") for n, row in enumerate(made))
    writer.close()
    assert indexed(admin)

    admin.execute("UPDATE spaces SET indexed = false WHERE dimensions = 48")
    with pytest.MonkeyPatch.context() as patch:
        # Whoever waited for the pause before a build would wait for hours.
        patch.setattr(indexing, "PAUSE", 36_000.0)
        patch.setattr(indexing, "PATIENCE", 36_000.0)
        reader = opened()
        assert reader.search("wide", made[0])[0].id == "0"
        reader.close()
    assert not indexed(admin)

    reader = opened()
    assert reader.search("wide", made[0])[0].id == "0"
    wait_for_index(admin)
    reader.drop("wide")
