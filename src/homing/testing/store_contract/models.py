"""Vectors come after the text, from one model or from two, and never outlive it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
import pytest

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch, StoreError
from homing.records import VectorRecord, text_hash
from homing.stores.store import ModelInfo, NewVector, SearchOptions, Store
from homing.testing.store_contract.samples import MODEL, WIDTH, Opened, ids, record, vector
from homing.vectors import Vector

NEW = "contract/new@5"
NEW_WIDTH = 5
TEXTS = {"a": "打开灯", "b": "关闭灯", "c": "read a file"}


def new_vector(*values: float) -> Vector:
    """A vector of the second model."""
    row = np.zeros(NEW_WIDTH, np.float32)
    row[: len(values)] = values
    return row


def embedded(store: Store, names: Iterable[str], row: Vector, collection: str = "things") -> list[NewVector]:
    """One vector for the texts that these records have now."""
    texts = store.texts(collection, list(names))
    return [NewVector(name, text_hash(text), row) for name, text in texts.items()]


def put_missing(store: Store, collection: str = "things") -> set[str]:
    """Give every record a vector of the second model, along its first axis."""
    missing = store.missing(collection, NEW)
    return store.put_vectors(collection, NEW, embedded(store, missing, new_vector(1), collection))


class ModelsContract(Opened):
    """put_vectors, models, model_of, missing, serve, discard, and what a write does to vectors."""

    @pytest.fixture
    def served(self, store: Store) -> Store:
        """A store with three embedded records and one without a vector."""
        store.write([record(name, 1, at, text=text, n=at) for at, (name, text) in enumerate(TEXTS.items())])
        store.write([record("z", text="只有关键词")])
        return store

    def test_a_write_of_the_same_text_keeps_its_vectors(self, served: Store) -> None:
        put_missing(served)
        before = served.search_vector("things", vector(1), 10)
        served.write([record("a", text="打开灯", room="卧室"), record("b", text="关闭灯", keywords="窗户")])
        assert served.search_vector("things", vector(1), 10)[0] == before[0]
        [found] = served.get("things", ["a"])
        assert (found.metadata, found.model, found.text) == ({"room": "卧室"}, MODEL, "打开灯")
        assert ids(served.search("things", vector(1), options=SearchOptions({"room": "卧室"}))) == ["a"]
        assert served.search("things", vector(1), options=SearchOptions({"n": 0})) == []
        assert ids(served.search_words("things", "打开", 10).found) == ["a"]
        assert ids(served.search_words("things", "窗户", 10).found) == ["b"]
        assert served.search_words("things", "关闭", 10).found == ()
        assert "a" not in served.missing("things", NEW)
        assert served.check() == []

    def test_a_write_of_another_text_takes_all_vectors_away(self, served: Store) -> None:
        put_missing(served)
        served.write([record("a", text="打开窗")])
        assert ids(served.search_vector("things", vector(1), 10)) == ["b", "c"]
        assert served.missing("things", NEW) == ["a"]
        assert served.missing("things", MODEL) == ["a", "z"]
        assert served.put_vectors("things", NEW, [NewVector("a", text_hash("打开灯"), new_vector(1))]) == set()
        assert served.check() == []

    def test_a_write_with_a_vector_brings_that_one_and_no_other(self, served: Store) -> None:
        put_missing(served)
        served.write([record("a", 0, 1, text="打开灯")])
        assert ids(served.search_vector("things", vector(0, 1), 1)) == ["a"]
        assert served.missing("things", NEW) == ["a"]
        assert served.check() == []

    def test_vectors_of_texts_that_changed_or_went_are_passed_over(self, served: Store) -> None:
        waiting = embedded(served, ["a", "b", "c"], new_vector(1))
        served.write([record("a", 1, text="另一个文本")])
        served.delete("things", ["b"])
        assert served.put_vectors("things", NEW, waiting) == {"c"}
        assert served.put_vectors("things", NEW, [NewVector("nobody", text_hash(""), new_vector(1))]) == set()
        assert served.missing("things", NEW) == ["a", "z"]
        assert served.check() == []

    def test_a_text_that_came_back_takes_the_vector_that_was_made_for_it(self, served: Store) -> None:
        waiting = embedded(served, ["a"], vector(0, 1))
        served.delete("things", ["a"])
        served.write([record("a", text="打开灯")])
        assert served.put_vectors("things", MODEL, waiting) == {"a"}
        assert ids(served.search_vector("things", vector(0, 1), 1)) == ["a"]

    def test_the_first_vectors_make_their_model_the_one_that_serves(self, served: Store) -> None:
        served.write([record("x", text="词", collection="later"), record("y", text="字", collection="later")])
        assert (served.model_of("later"), served.models("later")) == ("", [])
        assert served.put_vectors("later", NEW, embedded(served, ["x"], new_vector(1), "later")) == {"x"}
        assert served.model_of("later") == NEW
        assert ids(served.search("later", new_vector(1), options=SearchOptions(model=NEW))) == ["x"]
        assert served.put_vectors("later", MODEL, embedded(served, ["x", "y"], vector(1), "later")) == {"x", "y"}
        assert served.models("later") == [ModelInfo(NEW, NEW_WIDTH, 1, True), ModelInfo(MODEL, WIDTH, 2, False)]
        with pytest.raises(ModelMismatch):
            served.write([record("y", 1, text="字", collection="later")])

    def test_the_model_that_serves_is_known(self, served: Store) -> None:
        assert (served.model_of("things"), served.model_of("nothing")) == (MODEL, "")
        assert served.models("things") == [ModelInfo(MODEL, WIDTH, 3, True)]
        assert served.models("nothing") == []

    def test_a_second_model_changes_no_answer(self, served: Store) -> None:
        before = served.search("things", vector(1))
        assert put_missing(served) == {"a", "b", "c", "z"}
        assert served.search("things", vector(1), options=SearchOptions(model=MODEL)) == before
        assert served.model_of("things") == MODEL
        assert served.models("things") == [ModelInfo(MODEL, WIDTH, 3, True), ModelInfo(NEW, NEW_WIDTH, 4, False)]
        with pytest.raises(ModelMismatch):
            served.search("things", new_vector(1), options=SearchOptions(model=NEW))
        [info] = served.collections()
        assert (info.model, info.dimensions, info.embedded, info.records) == (MODEL, WIDTH, 3, 4)
        assert served.check() == []

    def test_missing_are_the_records_without_a_vector_of_the_model(self, served: Store) -> None:
        assert served.missing("things", NEW) == ["a", "b", "c", "z"]
        assert served.missing("things", MODEL) == ["z"]
        assert served.missing("things", NEW, after="a", limit=2) == ["b", "c"]
        assert served.missing("nothing", NEW) == []
        served.put_vectors("things", NEW, embedded(served, ["b"], new_vector(1)))
        assert served.missing("things", NEW) == ["a", "c", "z"]
        assert served.missing("things", NEW, after="a") == ["c", "z"]

    def test_a_model_that_serves_is_what_everything_speaks_of(self, served: Store) -> None:
        put_missing(served)
        served.serve("things", NEW)
        served.serve("things", NEW)
        assert served.model_of("things") == NEW
        assert [one.model for one in served.models("things")] == [NEW, MODEL]
        [info] = served.collections()
        assert (info.model, info.dimensions, info.embedded, info.records) == (NEW, NEW_WIDTH, 4, 4)
        [found] = served.get("things", ["b"])
        assert (found.model, found.text, found.metadata) == (NEW, "关闭灯", {"n": 1})
        assert found.embedding is not None
        assert found.embedding.shape == (NEW_WIDTH,)
        assert [one.model for one in served.records("things")] == [NEW] * 4
        assert ids(served.search_text("things", "关闭")) == ["b"]
        assert ids(served.search("things", new_vector(1), options=SearchOptions({"n": 2}, model=NEW))) == ["c"]
        assert [one.cosine for one in served.measure("things", ["a", "z"], vector=new_vector(1))] == [1, 1]
        with pytest.raises(ModelMismatch):
            served.search("things", vector(1), options=SearchOptions(model=MODEL))
        assert served.check() == []

    def test_what_is_written_meanwhile_is_missing_from_the_second_model(self, served: Store) -> None:
        put_missing(served)
        served.write([record("b", 5, text="关闭所有的灯"), record("d", 0, 1, text="新的")])
        assert ids(served.search_vector("things", vector(0, 1), 1)) == ["d"]
        assert served.missing("things", NEW) == ["b", "d"]
        with pytest.raises(ModelMismatch):
            served.write([VectorRecord("e", "things", new_vector(1), {}, "x", NEW)])
        put_missing(served)
        assert served.missing("things", NEW) == []
        served.serve("things", NEW)
        assert len(served.search_vector("things", new_vector(1), 10)) == 5
        assert served.check() == []

    def test_deletes_take_the_vectors_of_every_model(self, served: Store) -> None:
        put_missing(served)
        served.delete("things", ["a"])
        assert [one.embedded for one in served.models("things")] == [2, 3]
        served.serve("things", NEW)
        assert ids(served.search_vector("things", new_vector(1), 10)) == ["b", "c", "z"]
        served.delete("things", ["b"])
        assert [one.embedded for one in served.models("things")] == [2, 1]
        assert served.check() == []

    def test_going_back_is_one_step_and_shows_what_was_written_since(self, served: Store) -> None:
        before = served.search("things", vector(1))
        put_missing(served)
        served.serve("things", NEW)
        served.serve("things", MODEL)
        assert served.search("things", vector(1)) == before
        served.serve("things", NEW)
        served.write([VectorRecord("d", "things", new_vector(0, 1), {}, "新的", NEW)])
        served.serve("things", MODEL)
        assert served.search("things", vector(1)) == before
        assert served.put_vectors("things", MODEL, embedded(served, ["d"], vector(0, 1))) == {"d"}
        assert ids(served.search_vector("things", vector(0, 1), 1)) == ["d"]
        assert served.check() == []

    def test_a_model_that_does_not_serve_can_be_let_go(self, served: Store) -> None:
        put_missing(served)
        with pytest.raises(InvalidArgument):
            served.discard("things", MODEL)
        served.serve("things", NEW)
        assert served.discard("things", MODEL) == 3
        assert served.discard("things", MODEL) == 0
        assert served.discard("nothing", MODEL) == 0
        assert served.models("things") == [ModelInfo(NEW, NEW_WIDTH, 4, True)]
        assert served.missing("things", MODEL) == ["a", "b", "c", "z"]
        assert len(served.search("things", new_vector(1))) == 4
        assert served.check() == []

    def test_a_model_that_comes_back_after_it_was_let_go_is_searched_anew(self, served: Store, other: Store) -> None:
        assert len(other.search("things", vector(1))) == 3
        put_missing(served)
        served.serve("things", NEW)
        served.discard("things", MODEL)
        served.put_vectors("things", MODEL, embedded(served, ["a", "b", "c"], vector(0, 1)))
        served.serve("things", MODEL)
        assert [one.cosine for one in other.search_vector("things", vector(0, 1), 5)] == pytest.approx([1, 1, 1])

    def test_other_collections_stay_as_they_are(self, served: Store) -> None:
        served.write([record("x", 1, text="别处", collection="other")])
        put_missing(served)
        served.serve("things", NEW)
        served.discard("things", MODEL)
        assert served.model_of("other") == MODEL
        assert ids(served.search("other", vector(1))) == ["x"]
        put_missing(served, "other")
        assert served.drop("things") == 4
        served.serve("other", NEW)
        assert ids(served.search("other", new_vector(1))) == ["x"]
        assert served.check() == []

    def test_a_dropped_collection_takes_all_its_vectors_along(self, served: Store) -> None:
        put_missing(served)
        served.drop("things")
        assert served.models("things") == []
        served.write([record("a", 1, text="重来")])
        assert served.models("things") == [ModelInfo(MODEL, WIDTH, 1, True)]
        assert served.check() == []

    def test_what_cannot_be_is_refused(self, served: Store) -> None:
        with pytest.raises(InvalidArgument):
            served.serve("things", NEW)
        with pytest.raises(InvalidArgument):
            served.put_vectors("things", "", embedded(served, ["a"], new_vector(1)))
        with pytest.raises(InvalidArgument):
            served.put_vectors("things", NEW, embedded(served, ["a"], new_vector()))
        with pytest.raises(DimensionMismatch):
            served.put_vectors("things", MODEL, embedded(served, ["a"], new_vector(1)))
        assert served.put_vectors("things", NEW, []) == set()
        assert served.put_vectors("nothing", NEW, [NewVector("a", text_hash("a"), new_vector(1))]) == set()
        assert served.models("things") == [ModelInfo(MODEL, WIDTH, 3, True)]

    def test_another_opening_sees_the_change_at_once(self, served: Store, other: Store) -> None:
        assert len(other.search("things", vector(1))) == 3
        put_missing(served)
        served.serve("things", NEW)
        assert other.model_of("things") == NEW
        assert len(other.search("things", new_vector(1), options=SearchOptions(model=NEW))) == 4

    def test_searches_beside_a_change_see_one_model_or_the_other_and_never_nothing(self, served: Store) -> None:
        served.delete("things", ["z"])
        put_missing(served)
        failures: list[object] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                model = served.model_of("things")
                query = vector(1) if model == MODEL else new_vector(1)
                try:
                    found = served.search_vector("things", query, 10, SearchOptions(model=model))
                except ModelMismatch:
                    continue
                except (StoreError, InvalidArgument, ValueError) as error:
                    failures.append(error)
                    return
                if len(found) != 3:
                    failures.append(found)

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(max(3, self.rounds // 4)):
            served.serve("things", NEW)
            served.serve("things", MODEL)
        done.set()
        for thread in threads:
            thread.join()
        assert failures == []
