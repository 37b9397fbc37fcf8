"""The keyword index in PostgreSQL: exact, however many write, remove and join at once, whoever they are."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg
import pytest

from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from homing.stores.postings import tables
from homing.stores.store import SearchOptions
from tests.stores.test_postings import QUERIES, best, bm25, record, written

Opened = Callable[..., PostgresStore]


def answer(store: PostgresStore, query: str, limit: int, **pairs: object) -> list[str]:
    return [one.id for one in store.search_words("c", query, limit, SearchOptions(pairs)).found]


@pytest.mark.parametrize("at_once", [tables.AT_ONCE, 50])
def test_the_answer_is_that_of_scoring_every_text(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(tables, "AT_ONCE", at_once)
    store, other = opened(), opened()
    made = random.Random(1)
    texts: dict[str, str] = {}
    for turn in range(20):
        chosen = {f"{made.randint(0, 299):03d}": written(made) for _ in range(made.choice([1, 3, 40]))}
        store.write([record(name, text) for name, text in chosen.items()])
        texts |= chosen
        if turn % 3 == 2:
            gone = made.sample(sorted(texts), min(len(texts), made.choice([1, 5, 30])))
            other.delete("c", gone)
            texts = {name: text for name, text in texts.items() if name not in gone}
        if turn % 5 == 4:
            for query in QUERIES:
                expected = [name for name, _ in best(texts, query, 7)]
                assert answer(store, query, 7) == answer(other, query, 7) == expected
                passing = frozenset(name for name in texts if int(name) % 3 == 1)
                assert answer(other, query, 7, mod=1) == [name for name, _ in best(texts, query, 7, passing)]
    measured = store.measure("c", sorted(texts), query=QUERIES[1])
    assert {one.id: one.bm25 for one in measured if one.bm25} == pytest.approx(bm25(texts, QUERIES[1]))
    assert store.check() == other.check() == []


def test_many_who_write_remove_and_join_leave_the_words_of_the_texts(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, admin: psycopg.Connection
) -> None:
    """Each has records of its own, so that what is left is known; the segments are everybody's."""
    monkeypatch.setattr(tables, "AT_ONCE", 200)
    stores = [opened(), opened()]

    def write(writer: int) -> dict[str, str]:
        made, mine = random.Random(writer), dict[str, str]()
        store = stores[writer % 2]
        for _ in range(12):
            chosen = {f"{writer}{made.randint(0, 40):03d}": written(made) for _ in range(made.choice([1, 8]))}
            store.write([record(name, text) for name, text in chosen.items()])
            mine |= chosen
            gone = made.sample(sorted(mine), len(mine) // 4)
            store.delete("c", gone)
            mine = {name: text for name, text in mine.items() if name not in gone}
        return mine

    with ThreadPoolExecutor(4) as threads:
        texts = {name: text for mine in threads.map(write, range(1, 5)) for name, text in mine.items()}
    for query in QUERIES:
        assert (
            answer(stores[0], query, 10) == answer(stores[1], query, 10) == [name for name, _ in best(texts, query, 10)]
        )
    for store in stores:
        store.close()
    again = opened()
    assert again.check() == []
    [(segments,)] = admin.execute("SELECT count(*) FROM word_segments").fetchall()
    assert segments < 30
    assert again.drop("c") == len(texts)
    for table in ("word_segments", "word_pieces", "word_removals"):
        assert admin.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)], table


@pytest.mark.parametrize("fenced", [False, True])
def test_segments_of_a_user_are_joined_behind_the_fence(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, admin: psycopg.Connection, fenced: bool
) -> None:
    monkeypatch.setattr(tables, "AT_ONCE", 0)
    store = opened(row_security=fenced)
    for number in range(8):
        for user in ("李雷", "韩梅梅"):
            store.for_user(user).write([record(str(number), f"灯塔 {number} of {user}")])
    store.close()
    rows = admin.execute("SELECT user_id, count(*), sum(texts) FROM word_segments GROUP BY 1 ORDER BY 1").fetchall()
    assert [(user, int(texts)) for user, _, texts in rows] == [("李雷", 8), ("韩梅梅", 8)]
    again = opened()
    for user in ("李雷", "韩梅梅"):
        mine = again.for_user(user)
        assert len(answer(mine, "灯塔", 20)) == 8
        assert mine.search_words("c", "灯塔", 20).texts == 8
        assert mine.check() == []


def test_other_keywords_of_the_same_text_keep_its_vector(store: PostgresStore) -> None:
    vector = np.array([1, 0], np.float32)
    store.write([VectorRecord("a", "c", vector, {}, "灯塔", "m@2", keywords="lamp")])
    store.write([VectorRecord("a", "c", None, {}, "灯塔", keywords="keeper 守")])
    assert answer(store, "lamp", 5) == []
    assert answer(store, "keeper", 5) == answer(store, "守", 5) == ["a"]
    assert [near.id for near in store.search_vector("c", vector, 5)] == ["a"]
    assert store.check() == []


def test_a_write_that_is_undone_leaves_no_words(store: PostgresStore) -> None:
    store.write([record("1", "灯塔 lamp")])

    def fails(transaction: object) -> None:
        store.write([record("1", "孤独 lonely"), record("2", "lamp")], transaction)  # type: ignore[arg-type]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.database.write(fails)
    assert answer(store, "lamp", 5) == ["1"]
    assert answer(store, "lonely", 5) == []
    assert store.check() == []
