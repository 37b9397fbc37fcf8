"""Many write, delete and embed the same records at once; afterwards texts, words and vectors agree."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from homing.errors import ModelMismatch
from homing.records import VectorRecord, text_hash
from homing.stores.store import NewVector, Store
from homing.testing.store_contract.samples import Opened, OpenStore
from homing.vectors import Vector, normalise

COLLECTION = "shared"
KEYS = tuple("abcdef")
MODELS = {"contract/first@8": 8, "contract/second@5": 5}
ROUNDS = 40

_CHILD = """
import sys
from homing.stores import open_store
from homing.testing.store_contract.concurrency import take_part
store = open_store(sys.argv[1])
take_part(store, int(sys.argv[2]))
store.close()
"""


def word(writer: int, turn: int) -> str:
    """A word that stands in one text only; letters, so that no tokenizer takes it apart."""
    return "q" + "".join("bcdfghjklmnpqrtv"[int(digit, 16)] for digit in f"{writer:02x}{turn:04x}") + "k"


def vector_of(text: str, model: str) -> Vector:
    """The vector that a model makes of a text."""
    chance = np.random.default_rng(int(text_hash(model + text), 16))
    row: Vector = normalise(chance.standard_normal((1, MODELS[model])))[0]
    return row


def take_part(store: Store, writer: int, rounds: int = ROUNDS) -> None:
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


def check_agreement(store: Store, writers: int) -> None:
    """Texts, words and vectors are of one another, by id."""
    assert store.check() == []
    texts = store.texts(COLLECTION, KEYS)
    assert store.ids(COLLECTION) == sorted(texts)
    for writer in range(writers):
        for turn in range(ROUNDS):
            unique = word(writer, turn)
            found = [one.id for one in store.search_words(COLLECTION, unique, 100).found]
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


class ThreadsContract(Opened):
    """Threads, on two openings of the same data."""

    @pytest.fixture
    def other(self, open_store: OpenStore) -> Iterator[Store]:
        """A second opening of the same data."""
        opened = open_store()
        yield opened
        opened.close()

    def test_threads_that_change_the_same_records_leave_them_whole(self, store: Store, other: Store) -> None:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(take_part, [store, other, store, other], range(4)))
        check_agreement(store, 4)

    def test_a_text_that_is_replaced_while_it_is_embedded_has_no_old_vector(self, store: Store, other: Store) -> None:
        names = [f"{number:02d}" for number in range(20)]
        store.write([VectorRecord(name, COLLECTION, None, {}, "old") for name in names])
        model = next(iter(MODELS))
        vectors = [NewVector(name, text_hash("old"), vector_of("old", model)) for name in names]

        def replace() -> None:
            for start in range(0, len(names), 5):
                other.write([VectorRecord(one, COLLECTION, None, {}, "new") for one in names[start : start + 5]])

        for _ in range(5):
            store.write([VectorRecord(name, COLLECTION, None, {}, "old") for name in names])
            with ThreadPoolExecutor(2) as threads:
                put = threads.submit(partial(store.put_vectors, COLLECTION, model, vectors))
                threads.submit(replace).result()
                assert put.result() <= set(names)
            assert store.missing(COLLECTION, model) == names
            assert store.check() == []


class ConcurrencyContract(ThreadsContract):
    """Threads, and processes. For stores that `open_store` knows by a URL: give the fixture `store_url` as well."""

    @pytest.fixture
    def store_url(self) -> str:
        """The URL of the data that `open_store` opens."""
        raise NotImplementedError("override the fixture `store_url`")

    def test_processes_that_change_the_same_records_leave_them_whole(self, store: Store, store_url: str) -> None:
        writers = [subprocess.Popen([sys.executable, "-c", _CHILD, store_url, str(writer)]) for writer in range(2)]
        assert [writer.wait() for writer in writers] == [0, 0]
        check_agreement(store, 2)
