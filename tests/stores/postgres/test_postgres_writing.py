"""Writing to PostgreSQL: many at once, a lot at once, and not for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg
import pytest

from homing.errors import InvalidArgument, ModelMismatch, StoreBusy, StoreError
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore

Opened = Callable[..., PostgresStore]


def record(name: str, text: str = "词 word", *values: float, model: str = "m@2", **metadata: object) -> VectorRecord:
    embedding = np.array(values, np.float32) if values else None
    return VectorRecord(name, "c", embedding, metadata, text, model if values else "")


def test_writers_of_the_same_records_end_with_one_of_each(opened: Opened) -> None:
    stores = [opened(), opened()]
    names = [f"{number:02d}" for number in range(40)]

    def write(writer: int) -> None:
        order = names if writer % 2 else names[::-1]
        for turn in range(6):
            stores[writer % 2].upsert([record(name, f"作者{writer} 第{turn}", 1, writer) for name in order])
            stores[writer % 2].delete("c", order[writer::7])

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(6)))
    stores[0].upsert([record(name, "最后 last", 1, 0) for name in names])
    assert [found.text for found in stores[1].records("c")] == ["最后 last"] * 40
    [info] = stores[1].collections()
    assert (info.records, info.embedded) == (40, 40)
    assert stores[0].check() == []


def test_counts_stay_exact_over_many_small_writes(store: PostgresStore, admin: psycopg.Connection) -> None:
    for number in range(150):
        store.upsert([record(str(number % 50), "数 count", 1, number)])
    store.delete("c", ["1", "2", "3"])
    [info] = store.collections()
    assert (info.records, info.embedded) == (47, 47)
    [(rows,)] = admin.execute("SELECT count(*) FROM tallies").fetchall()
    assert rows < 100
    assert store.check() == []


def test_an_upsert_larger_than_a_portion_is_one_transaction(store: PostgresStore) -> None:
    names = [f"{number:05d}" for number in range(11_000)]
    assert store.upsert(record(name, f"第{name}个") for name in names) == 11_000
    store.upsert([VectorRecord("a", "zz", np.ones(2, np.float32), {}, "", "m@2")])
    wrong = VectorRecord("a", "zz", np.ones(2, np.float32), {}, "", "another@2")
    with pytest.raises(ModelMismatch):
        store.upsert([*(record(name, "改 changed") for name in names), wrong])
    assert store.search_text("c", "changed") == []
    assert store.collections()[0].records == 11_000


def test_two_models_that_race_for_a_collection_do_not_share_it(opened: Opened) -> None:
    stores = [opened(), opened()]
    for turn in range(8):
        gate = threading.Barrier(2)

        def write(number: int, gate: threading.Barrier = gate) -> str:
            gate.wait()
            try:
                stores[number].upsert([record(f"{number}", "词", 1, 2, model=f"model-{number}@2")])
            except ModelMismatch:
                return "refused"
            return "written"

        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(write, range(2))) == ["refused", "written"], turn
        stores[0].drop("c")


def test_a_collection_without_vectors_left_may_take_another_model(store: PostgresStore) -> None:
    store.upsert([record("a", "词", 1, 2)])
    store.upsert([record("a", "字")])
    store.upsert([VectorRecord("b", "c", np.ones(3, np.float32), {}, "词", "other@3")])
    assert [match.id for match in store.search("c", np.ones(3, np.float32))] == ["b"]
    assert store.check() == []


def test_vectors_come_back_bit_by_bit(store: PostgresStore) -> None:
    rows = np.random.default_rng(3).standard_normal((50, 96)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    store.upsert(VectorRecord(f"{n:02d}", "c", row, {}, "", "m@96") for n, row in enumerate(rows))
    [once] = [[found.embedding for found in store.records("c")]]
    store.upsert(VectorRecord(f"{n:02d}", "copy", row, {}, "", "m@96") for n, row in enumerate(once) if row is not None)
    for one, two in zip(store.records("c"), store.records("copy"), strict=True):
        assert one.embedding is not None
        assert two.embedding is not None
        np.testing.assert_allclose(one.embedding, two.embedding, atol=1e-7)


@pytest.mark.parametrize("width", [1, 2_000, 3_072, 16_000])
def test_vectors_of_any_width_up_to_what_pgvector_holds(store: PostgresStore, width: int) -> None:
    rows = np.random.default_rng(width).standard_normal((3, width)).astype(np.float32)
    store.upsert(VectorRecord(str(n), "c", row, {}, "", f"m@{width}") for n, row in enumerate(rows))
    assert store.search("c", rows[1], limit=1)[0].id == ("1" if width > 1 else store.search("c", rows[1])[0].id)


def test_a_wider_vector_is_refused(store: PostgresStore) -> None:
    with pytest.raises(InvalidArgument, match="16000"):
        store.upsert([VectorRecord("a", "c", np.ones(16_001, np.float32), {}, "", "m@16001")])
    assert store.collections() == []


def test_a_name_too_long_for_an_index_is_refused(store: PostgresStore) -> None:
    long = "".join(chr(0x4E00 + number) for number in range(900))
    for wrong in (VectorRecord(long, "c", None, {}, ""), VectorRecord("a", long, None, {}, "")):
        with pytest.raises(InvalidArgument, match="shorten"):
            store.upsert([wrong])
    assert store.search(long, np.ones(2, np.float32)) == []
    assert store.get("c", [long]) == []


def test_words_of_any_length_and_number_are_kept(store: PostgresStore) -> None:
    many = " ".join(f"w{number}" for number in range(30_000))
    store.upsert([record("long", "x" * 100_000 + " 针"), record("many", many), record("often", "重复 " * 40_000)])
    assert [match.id for match in store.search_text("c", "w29999")] == ["many"]
    assert [match.id for match in store.search_text("c", "重复")] == ["often"]
    assert [match.id for match in store.search_text("c", "x" * 100_000 + " 针")] == ["long"]


def test_a_statement_that_takes_too_long_is_given_up(opened: Opened, admin: psycopg.Connection) -> None:
    patient, store = opened(), opened(statement_timeout=1.0)
    patient.upsert([record("a", "before 之前")])
    with admin.transaction():
        admin.execute("LOCK TABLE records IN ACCESS EXCLUSIVE MODE")
        # Nobody lets go of the lock before both were given up.
        with pytest.raises(StoreBusy, match="statement_timeout"):
            store.upsert([record("a", "after 之后")])
        with pytest.raises(StoreBusy):
            store.search_text("c", "before")
    assert [found.text for found in patient.get("c", ["a"])] == ["before 之前"]
    patient.upsert([record("a", "after 之后")])
    assert [match.id for match in patient.search_text("c", "之后")] == ["a"]


def test_more_threads_than_connections_take_turns(store: PostgresStore) -> None:
    store.upsert([record("a", "词", 1, 2)])
    with ThreadPoolExecutor(40) as threads:
        found = list(threads.map(lambda _: store.search("c", np.ones(2, np.float32)), range(200)))
    assert all(matches[0].id == "a" for matches in found)


def test_damage_is_told(store: PostgresStore, admin: psycopg.Connection) -> None:
    store.upsert([record("a", "词", 1, 2), record("b", "字", 2, 1)])
    assert store.check() == []
    admin.execute("DELETE FROM word_segments")
    admin.execute("DELETE FROM vectors_1 WHERE record = (SELECT min(key) FROM records)")
    admin.execute("DELETE FROM records WHERE key = (SELECT max(key) FROM records)")
    found = "\n".join(store.check())
    assert "counts 2 records and has 1" in found
    assert "1 records are missing from the keyword index" in found
    assert "belong to no record" in found


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE records SET text = 'another' WHERE id = 'a'", "1 records do not have the text that was written: 'a'"),
        (
            "UPDATE records SET keywords = 'another' WHERE id = 'b'",
            "words in the keyword index that are not their own: 'b'",
        ),
        ("UPDATE word_pieces SET postings = '\\x00000000'", "the keyword index of collection 'c' is damaged"),
        ("DELETE FROM word_pieces", "the keyword index of collection 'c' is damaged"),
        ("DELETE FROM records WHERE id = 'a'", "1 entries of the keyword index belong to no record"),
        ("DELETE FROM collections", "1 segments of the keyword index belong to no collection"),
        ("UPDATE vectors_1 SET hash = '\\x00'", "2 vectors of 'm@2' are of another text: 'a' of 'c', 'b' of 'c'"),
        ("DELETE FROM records WHERE id = 'a'", "1 vectors of 'm@2' belong to no record"),
        ("DELETE FROM held", "2 vectors of 'm@2' are unknown to their collection"),
        ("DELETE FROM vectors_1", "collection 'c' counts 2 vectors and has 0"),
    ],
)
def test_what_does_not_agree_is_told_by_id(
    store: PostgresStore, admin: psycopg.Connection, damage: str, said: str
) -> None:
    store.upsert([record("a", "词", 1, 2), record("b", "字", 2, 1), record("half", "half \ud800")])
    assert store.check() == []
    admin.execute(damage.encode())
    assert said in "\n".join(store.check())


def test_vectors_of_a_model_that_is_new_are_refused_inside_a_transaction(store: PostgresStore) -> None:
    store.upsert([record("a", "词", 1, 2)])
    new = VectorRecord("a", "another", np.ones(2, np.float32), {}, "字", "new@2")
    with pytest.raises(StoreError, match="put the vector"):
        store.database.write(lambda t: store.write([new], t))
    assert [info.name for info in store.collections()] == ["c"]
    assert store.database.write(lambda t: store.write([record("b", "字", 1, 2)], t)) == 1
    assert [found.id for found in store.search("c", np.ones(2, np.float32))] == ["a", "b"]
    assert store.check() == []
