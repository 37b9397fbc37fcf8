"""Stores are opened again, opened twice, closed, used by many threads and processes, and killed.

Afterwards texts, words and vectors agree, and whole calls are there or nothing of them.
"""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import numpy as np
import pytest

from homing.errors import ModelMismatch, StoreError
from homing.records import VectorRecord, text_hash
from homing.stores.store import NewVector, Store
from homing.testing.store_contract.samples import MODEL, Opened, OpenStore, ids, only, record, vector
from homing.vectors import Vector, normalise

COLLECTION = "shared"
KEYS = tuple("abcdef")
MODELS = {"contract/first@8": 8, "contract/second@5": 5}
SIZE, CALLS = 40, 3
_WRITER = f"""
import sys
from homing.stores import open_store
from homing.testing.store_contract.samples import record
store = open_store(sys.argv[1])
for call in range(10_000):
    store.upsert([record(f"{{call:05d}}-{{one:02d}}", 1, one, text=f"词{{one}}", call=call) for one in range({SIZE})])
    print(call, flush=True)
"""

_CHILD = """
import sys
from homing.stores import open_store
from homing.testing.store_contract.concurrency import take_part
store = open_store(sys.argv[1])
take_part(store, *map(int, sys.argv[2:]))
store.close()
"""


def word(writer: int, turn: int) -> str:
    """A word that stands in one text only: letters, so that no tokenizer takes it apart, and each twice, so that no two
    words are one edit apart, which a store may take for a misspelling."""
    return "q" + "".join(2 * "bcdfghjklmnpqrtv"[int(digit, 16)] for digit in f"{writer:02x}{turn:04x}") + "k"


def vector_of(text: str, model: str) -> Vector:
    """The vector that a model makes of a text."""
    chance = np.random.default_rng(int(text_hash(model + text), 16))
    row: Vector = normalise(chance.standard_normal((1, MODELS[model])))[0]
    return row


def take_part(store: Store, writer: int, rounds: int) -> None:
    """Write, delete and embed what others write, delete and embed, in an order of this writer's own."""
    chance = random.Random(writer)
    for turn in range(rounds):
        names = chance.sample(KEYS, chance.randint(1, 3))
        model = chance.choice(list(MODELS))
        texts = store.texts(COLLECTION, names)
        action = chance.choice(["write", "write", "replace", "describe", "delete", "put", "put", "put"])
        if action == "write":
            text = f"{word(writer, turn)} 共同的词"
            store.write([VectorRecord(name, COLLECTION, None, {"turn": turn}, f"{name} {text}") for name in names])
        elif action == "replace":
            text = f"{names[0]} {word(writer, turn)} 共同的词"
            try:
                store.write([VectorRecord(names[0], COLLECTION, vector_of(text, model), {}, text, model)])
            except ModelMismatch:
                continue
        elif action == "describe":
            store.write([VectorRecord(name, COLLECTION, None, {"turn": turn}, text) for name, text in texts.items()])
        elif action == "delete":
            store.delete(COLLECTION, names)
        else:
            vectors = [NewVector(name, text_hash(text), vector_of(text, model)) for name, text in texts.items()]
            assert store.put_vectors(COLLECTION, model, vectors) <= set(texts)


def check_agreement(store: Store, writers: int, rounds: int) -> None:
    """Texts, words and vectors are of one another, by id."""
    assert store.check() == []
    texts = store.texts(COLLECTION, KEYS)
    assert store.ids(COLLECTION) == sorted(texts)
    for writer in range(writers):
        for turn in range(rounds):
            unique = word(writer, turn)
            found = ids(store.search_words(COLLECTION, unique, 100).found)
            assert found == sorted(name for name, text in texts.items() if unique in text)
    for info in store.models(COLLECTION):
        store.serve(COLLECTION, info.model)
        records = store.get(COLLECTION, sorted(texts))
        embedded = {one.id: one.embedding for one in records if one.embedding is not None}
        assert len(embedded) == info.embedded
        assert store.missing(COLLECTION, info.model) == sorted(set(texts) - set(embedded))
        for name, embedding in embedded.items():
            expected = vector_of(texts[name], info.model)
            np.testing.assert_allclose(embedding, expected, atol=1e-6)
            assert store.search_vector(COLLECTION, expected, 1)[0].id == name
        assert len(store.search_vector(COLLECTION, vector_of("", info.model), 100)) == len(embedded)


class SharingContract(Opened):
    """Durability and concurrency."""

    def test_what_was_written_is_there_after_opening_again(self, open_store: OpenStore) -> None:
        with closing(open_store()) as store:
            store.upsert([record("a", 1, text="持久 durable", kind="x"), record("b", 0, 1, text="gone")])
            store.delete("things", ["b"])
        with closing(open_store()) as store:
            assert ids(store.search("things", vector(1), options=only(kind="x"))) == ["a"]
            assert ids(store.search_text("things", "持久")) == ["a"]
            assert ids(store.search("things", vector(0, 1))) == ["a"]
            store.upsert([record("c", 1, text="more")])
            assert ids(store.search("things", vector(1))) == ["a", "c"]

    def test_a_second_store_on_the_same_data_sees_every_change(self, store: Store, other: Store) -> None:
        for number in range(self.rounds):
            store.upsert([record(f"{number:02d}", 1, number / 10, text=f"词{number}")])
            assert len(other.search("things", vector(1), limit=100)) == number + 1
            assert ids(other.search_text("things", f"词{number}"))[0] == f"{number:02d}"
        other.delete("things", ["00"])
        other.upsert([record("01", -1, text="替换")])
        assert ids(store.search("things", vector(1), limit=100)) == [f"{n:02d}" for n in range(2, self.rounds)] + ["01"]
        other.drop("things")
        assert store.search("things", vector(1)) == []

    def test_a_closed_store_refuses_every_call(self, open_store: OpenStore) -> None:
        store = open_store()
        store.upsert([record("a", 1)])
        store.close()
        store.close()
        for call in (
            lambda: store.upsert([record("b", 1)]),
            lambda: store.search("things", vector(1)),
            lambda: store.search_text("things", "x"),
            lambda: store.get("things", ["a"]),
            lambda: list(store.records("things")),
            lambda: store.ids("things"),
            lambda: store.delete("things", ["a"]),
            lambda: store.drop("things"),
            lambda: store.collections(),
            lambda: store.check(),
            lambda: store.write([record("a")]),
            lambda: store.texts("things", ["a"]),
            lambda: store.search_vector("things", vector(1), 1),
            lambda: store.search_words("things", "lamp", 1),
            lambda: store.measure("things", ["a"], query="lamp"),
            lambda: store.put_vectors("things", MODEL, [NewVector("a", text_hash(""), vector(1))]),
            lambda: store.models("things"),
            lambda: store.model_of("things"),
            lambda: store.missing("things", MODEL),
            lambda: store.serve("things", MODEL),
            lambda: store.discard("things", MODEL),
        ):
            with pytest.raises(StoreError):
                call()

    def test_threads_write_and_search_at_once(self, store: Store) -> None:
        writers, rounds = 4, self.rounds
        done = threading.Event()

        def write(writer: int) -> None:
            for number in range(rounds):
                store.upsert([record(f"{writer}-{number}", 1, number / 100, text=f"线程 thread {writer}", w=writer)])
                if number % 5 == 4:
                    store.delete("things", [f"{writer}-{number - 1}"])

        def search() -> int:
            most = 0
            while not done.is_set():
                found = store.search("things", vector(1), limit=200)
                assert [match.distance for match in found] == sorted(match.distance or 0 for match in found)
                assert len(set(ids(found))) == len(found)
                store.search_text("things", "线程", options=only(w=1))
                most = max(most, len(found))
            return most

        with ThreadPoolExecutor(writers + 2) as pool:
            searching = [pool.submit(search) for _ in range(2)]
            try:
                for written in [pool.submit(write, writer) for writer in range(writers)]:
                    written.result()
            finally:
                done.set()
            assert all(0 <= result.result() <= writers * rounds for result in searching)
        kept = writers * (rounds - rounds // 5)
        assert len(store.search("things", vector(1), limit=200)) == kept
        assert len(store.search_text("things", "thread", limit=200)) == kept
        assert store.check() == []

    def test_a_record_that_is_replaced_is_never_missed(self, store: Store) -> None:
        store.upsert([record("a", 1, text="永远 always")])
        done = threading.Event()

        def replace() -> None:
            try:
                for number in range(2 * self.rounds):
                    store.upsert([record("a", 1, number / 1000, text="永远 always")])
            finally:
                done.set()

        with ThreadPoolExecutor(1) as pool:
            replacing = pool.submit(replace)
            while not done.is_set():
                assert ids(store.search("things", vector(1))) == ["a"]
                assert ids(store.search_text("things", "永远")) == ["a"]
            replacing.result()


class ThreadsContract(Opened):
    """Threads, on two openings of the same data."""

    def test_threads_that_change_the_same_records_leave_them_whole(self, store: Store, other: Store) -> None:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(take_part, [store, other, store, other], range(4), [self.rounds] * 4))
        check_agreement(store, 4, self.rounds)

    def test_a_text_that_is_replaced_while_it_is_embedded_has_no_old_vector(self, store: Store, other: Store) -> None:
        names = [f"{number:02d}" for number in range(20)]
        store.write([VectorRecord(name, COLLECTION, None, {}, "old") for name in names])
        model = next(iter(MODELS))
        vectors = [NewVector(name, text_hash("old"), vector_of("old", model)) for name in names]

        def replace() -> None:
            for start in range(0, len(names), 5):
                other.write([VectorRecord(one, COLLECTION, None, {}, "new") for one in names[start : start + 5]])

        for _ in range(max(3, self.rounds // 8)):
            store.write([VectorRecord(name, COLLECTION, None, {}, "old") for name in names])
            with ThreadPoolExecutor(2) as threads:
                put = threads.submit(partial(store.put_vectors, COLLECTION, model, vectors))
                threads.submit(replace).result()
                assert put.result() <= set(names)
            assert store.missing(COLLECTION, model) == names
            assert store.check() == []


class ConcurrencyContract(ThreadsContract):
    """Threads, and processes. For stores that `open_store` knows by a URL: give the fixture `store_url` as well."""

    def test_processes_that_change_the_same_records_leave_them_whole(self, store: Store, store_url: str) -> None:
        for process in [self.start_python(_CHILD, store_url, str(one), str(self.rounds)) for one in range(2)]:
            with process:
                assert process.wait() == 0
        check_agreement(store, 2, self.rounds)


class CrashContract(Opened):
    """For stores that `open_store` knows by a URL: give the fixture `store_url` beside `open_store`."""

    def test_a_killed_writer_leaves_whole_calls_and_nothing_acknowledged_is_lost(
        self, open_store: OpenStore, store_url: str
    ) -> None:
        acknowledged = -1
        with self.start_python(_WRITER, store_url) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                acknowledged = int(line)
                if acknowledged + 1 >= CALLS:
                    break
            writer.kill()
        with closing(open_store()) as store:
            written = [found.metadata["call"] for found in store.records("things")]
            assert all(written.count(call) == SIZE for call in set(written))
            assert set(range(acknowledged + 1)) <= set(written)
            assert len(ids(store.search("things", vector(1), limit=1_000))) == len(written)
            assert store.check() == []
