"""What is derived is made anew from the texts, also in the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import homing.stores.postgres.indexing as indexing
from homing.doctor.repairing import repair
from homing.engine import Engine
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from homing.testing.fake import FakeEmbedder

TEXTS = {f"{number:02d}": f"灯塔 lamp {chr(97 + number)}word" for number in range(12)}


def filled(store: PostgresStore) -> Engine:
    engine = Engine(store, FakeEmbedder(), background=False)
    engine.collection("c").write([VectorRecord(key, "c", None, {}, text) for key, text in TEXTS.items()])
    mine = engine.for_user("小明")
    mine.collection("c").write([VectorRecord("own", "c", None, {}, "我的 own words", "", "关键词")])
    assert engine.flush()
    return engine


DAMAGE = {
    "words gone": "DELETE FROM word_segments",
    "postings gone": "DELETE FROM word_pieces",
    "postings changed": "UPDATE word_pieces SET postings = set_byte(postings, 5, 255 - get_byte(postings, 5))",
    "words of others": "UPDATE records SET key = key + 1000000 WHERE id = '03'",
    "counts": "UPDATE tallies SET records = records + 7, embedded = 1",
    "vector of another text": "UPDATE vectors_1 SET hash = '\\x00' WHERE record % 2 = 0",
    "vector of no text": "INSERT INTO vectors_1 SELECT -1, collection, user_id, hash, embedding FROM vectors_1 LIMIT 1",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_to_what_is_derived_is_mended(store: PostgresStore, name: str) -> None:
    engine = filled(store)
    assert store.check() == []
    store.database.sessions.write(lambda connection: connection.execute(DAMAGE[name]))
    assert store.check()
    done = repair(engine)
    assert done.found
    assert engine.flush()
    assert store.check() == []
    assert done.left == []
    assert done.texts == 13
    assert [one.id for one in store.search_words("c", "dword", 3).found] == ["03"]
    assert [one.id for one in engine.for_user("小明").store.search_words("c", "关键词", 3).found] == ["own"]
    assert store.pending("c") == 0
    assert len(store.search_vector("c", FakeEmbedder().embed(["灯塔"])[0], 20)) == 12


def test_a_damaged_text_is_named_and_the_rest_is_mended(store: PostgresStore) -> None:
    engine = filled(store)
    sessions = store.database.sessions
    sessions.write(lambda connection: connection.execute("UPDATE records SET text = 'another' WHERE id = '05'"))
    sessions.write(lambda connection: connection.execute("DELETE FROM word_segments"))
    done = repair(engine)
    assert done.left == ["1 records do not have the text that was written: '05' of 'c'"]
    assert [one.id for one in store.search_words("c", "dword", 3).found] == ["03"]


def test_the_indexes_of_the_server_are_made_anew(
    opened: Callable[..., PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "WORTHWHILE", 50)
    store = opened()
    rows = np.random.default_rng(3).standard_normal((300, 8)).astype(np.float32)
    store.write(VectorRecord(f"{n:03d}", "c", row, {}, f"text {n}", "m@8") for n, row in enumerate(rows))
    store.build_indexes()
    files = "SELECT count(*) FROM pg_class WHERE relkind = 'i' AND relfilenode = ANY(%s)"

    def asked(statement: str, *values: object) -> list[tuple[Any, ...]]:
        return store.database.sessions.read(lambda connection: connection.execute(statement, values or None).fetchall())

    def nodes() -> list[int]:
        found = asked(
            "SELECT relfilenode FROM pg_class WHERE relkind = 'i' AND relnamespace = current_schema()::regnamespace"
        )
        return [int(node) for (node,) in found]

    before = nodes()
    assert store.rebuild().texts == 300
    [(left,)] = asked(files, before)
    [(valid,)] = asked("SELECT bool_and(indisvalid) FROM pg_index")
    [(indexed,)] = asked("SELECT bool_and(indexed) FROM spaces")
    assert (left, valid, indexed) == (0, True, True)
    assert len(nodes()) == len(before)
    assert store.check() == []
