"""What every store promises about changing the model of a collection, as tests that any engine runs.

class TestMyStore(SwitchContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: MyStore(tmp_path / "data")     # called again, it opens the same data
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch, StoreError
from homing.records import VectorRecord
from homing.stores.store import SearchOptions
from homing.stores.switching import SpaceInfo, SwitchingStore
from homing.testing.store_contract import MODEL, WIDTH, ids, record, vector
from homing.vectors import Vector

NEW = "contract/new@5"
NEW_WIDTH = 5
OpenSwitching = Callable[[], SwitchingStore]


def new_vector(*values: float) -> Vector:
    """A vector of the second model."""
    row = np.zeros(NEW_WIDTH, np.float32)
    row[: len(values)] = values
    return row


def embedded(records: Iterable[VectorRecord], *values: float) -> list[VectorRecord]:
    """These records with one vector of the second model."""
    return [VectorRecord(one.id, one.collection, new_vector(*values), {}, one.text, NEW) for one in records]


def switch(store: SwitchingStore, collection: str = "things") -> None:
    """The whole way to the second model; in it every vector points along the first axis."""
    store.stage(collection, NEW, NEW_WIDTH)
    store.add_vectors(embedded(store.missing(collection, NEW), 1))
    assert store.activate(collection, NEW) == 0


class SwitchContract:
    """Subclass it and give it the fixture `open_store`."""

    @pytest.fixture
    def open_store(self) -> OpenSwitching:
        """A function that opens the store; called again it opens the same data."""
        raise NotImplementedError("override the fixture `open_store`")

    @pytest.fixture
    def store(self, open_store: OpenSwitching) -> Iterator[SwitchingStore]:
        """A store with three embedded records and one without a vector."""
        opened = open_store()
        texts = {"a": "打开灯", "b": "关闭灯", "c": "read a file"}
        opened.upsert([record(name, 1, at, text=text, n=at) for at, (name, text) in enumerate(texts.items())])
        opened.upsert([record("z", text="只有关键词")])
        yield opened
        opened.close()

    def test_the_model_that_answers_is_known(self, store: SwitchingStore) -> None:
        assert store.model_of("things") == MODEL
        assert store.model_of("nothing") == ""
        store.upsert([record("x", text="无", collection="words")])
        assert store.model_of("words") == ""
        assert store.spaces("things") == [SpaceInfo(MODEL, WIDTH, 3, True)]
        assert store.spaces("nothing") == []

    def test_a_staged_model_changes_no_answer(self, store: SwitchingStore) -> None:
        before = store.search("things", vector(1))
        store.stage("things", NEW, NEW_WIDTH)
        store.add_vectors(embedded(store.missing("things", NEW), 1))
        assert store.search("things", vector(1), options=SearchOptions(model=MODEL)) == before
        assert store.model_of("things") == MODEL
        assert store.spaces("things") == [SpaceInfo(MODEL, WIDTH, 3, True), SpaceInfo(NEW, NEW_WIDTH, 3, False)]
        with pytest.raises(ModelMismatch):
            store.search("things", new_vector(1), options=SearchOptions(model=NEW))
        [info] = store.collections()
        assert (info.model, info.dimensions, info.embedded, info.records) == (MODEL, WIDTH, 3, 4)
        assert store.check() == []

    def test_missing_are_the_records_with_a_vector_but_none_of_this_model(self, store: SwitchingStore) -> None:
        found = {one.id: one for one in store.missing("things", NEW)}
        assert sorted(found) == ["a", "b", "c"]
        assert found["b"].text == "关闭灯"
        assert found["b"].metadata == {"n": 1}
        assert found["b"].embedding is None
        assert list(store.missing("things", MODEL)) == []
        assert list(store.missing("nothing", NEW)) == []
        store.stage("things", NEW, NEW_WIDTH)
        assert store.add_vectors(embedded([found["a"]], 1)) == 1
        assert sorted(one.id for one in store.missing("things", NEW)) == ["b", "c"]

    def test_activating_flips_only_when_nothing_is_missing(self, store: SwitchingStore) -> None:
        store.stage("things", NEW, NEW_WIDTH)
        first, *others = store.missing("things", NEW)
        store.add_vectors(embedded([first], 1))
        assert store.activate("things", NEW) == 2
        assert store.model_of("things") == MODEL
        store.add_vectors(embedded(others, 1))
        assert store.activate("things", NEW) == 0
        assert store.model_of("things") == NEW
        assert ids(store.search("things", new_vector(1), options=SearchOptions(model=NEW))) == ["a", "b", "c"]
        with pytest.raises(ModelMismatch):
            store.search("things", vector(1), options=SearchOptions(model=MODEL))
        assert store.check() == []

    def test_after_the_flip_everything_speaks_of_the_new_model(self, store: SwitchingStore) -> None:
        switch(store)
        [info] = store.collections()
        assert (info.model, info.dimensions, info.embedded, info.records) == (NEW, NEW_WIDTH, 3, 4)
        [found] = store.get("things", ["b"])
        assert (found.model, found.text, found.metadata) == (NEW, "关闭灯", {"n": 1})
        assert found.embedding is not None
        assert found.embedding.shape == (NEW_WIDTH,)
        assert [one.model for one in store.records("things")] == [NEW, NEW, NEW, ""]
        assert ids(store.search_text("things", "关闭")) == ["b"]
        assert ids(store.search("things", new_vector(1), options=SearchOptions({"n": 2}, model=NEW))) == ["c"]

    def test_writes_during_a_switch_keep_the_first_model_and_are_missing_from_the_second(
        self, store: SwitchingStore
    ) -> None:
        store.stage("things", NEW, NEW_WIDTH)
        store.add_vectors(embedded(store.missing("things", NEW), 1))
        store.upsert([record("b", 5, text="关闭所有的灯"), record("d", 0, 1, text="新的")])
        assert ids(store.search("things", vector(0, 1), 1)) == ["d"]
        assert sorted(one.id for one in store.missing("things", NEW)) == ["b", "d"]
        assert store.activate("things", NEW) == 2
        with pytest.raises(ModelMismatch):
            store.upsert([VectorRecord("e", "things", new_vector(1), {}, "x", NEW)])
        store.add_vectors(embedded(store.missing("things", NEW), 1))
        assert store.activate("things", NEW) == 0
        assert store.check() == []

    def test_a_vector_of_a_text_that_changed_meanwhile_is_passed_over(self, store: SwitchingStore) -> None:
        store.stage("things", NEW, NEW_WIDTH)
        waiting = list(store.missing("things", NEW))
        store.upsert([record("a", 1, text="另一个文本")])
        store.delete("things", ["b"])
        assert store.add_vectors(embedded(waiting, 1)) == 1
        assert [one.id for one in store.missing("things", NEW)] == ["a"]
        assert store.add_vectors(embedded(waiting, 1)) == 0

    def test_deletes_take_the_vectors_of_both_models(self, store: SwitchingStore) -> None:
        store.stage("things", NEW, NEW_WIDTH)
        store.add_vectors(embedded(store.missing("things", NEW), 1))
        store.delete("things", ["a"])
        assert [space.embedded for space in store.spaces("things")] == [2, 2]
        assert store.activate("things", NEW) == 0
        assert ids(store.search("things", new_vector(1))) == ["b", "c"]
        store.delete("things", ["b"])
        assert [space.embedded for space in store.spaces("things")] == [1, 1]
        assert store.check() == []

    def test_going_back_is_one_step_and_shows_what_was_written_since(self, store: SwitchingStore) -> None:
        before = store.search("things", vector(1))
        switch(store)
        assert [space.model for space in store.spaces("things")] == [NEW, MODEL]
        assert store.activate("things", MODEL) == 0
        assert store.search("things", vector(1)) == before
        assert store.activate("things", NEW) == 0
        store.upsert([VectorRecord("d", "things", new_vector(0, 1), {}, "新的", NEW)])
        assert store.activate("things", MODEL) == 1
        assert store.model_of("things") == NEW
        assert store.activate("things", MODEL, complete=False) == 1
        assert store.search("things", vector(1)) == before
        [late] = store.missing("things", MODEL)
        store.add_vectors([record("d", 0, 1, text=late.text)])
        assert ids(store.search("things", vector(0, 1), 1)) == ["d"]
        assert store.check() == []

    def test_a_third_model_takes_the_place_of_the_one_that_does_not_answer(self, store: SwitchingStore) -> None:
        switch(store)
        store.stage("things", "contract/third@3", 3)
        assert [(one.model, one.embedded) for one in store.spaces("things")] == [(NEW, 3), ("contract/third@3", 0)]
        store.stage("things", "contract/third@3", 3)
        assert store.check() == []

    def test_the_only_vector_of_a_record_is_never_let_go(self, store: SwitchingStore) -> None:
        switch(store)
        store.upsert([VectorRecord("d", "things", new_vector(0, 1), {}, "新的", NEW)])
        store.activate("things", MODEL, complete=False)
        store.stage("things", MODEL, WIDTH)
        store.stage("things", "contract/third@3", 3)
        assert "d" in {one.id for one in store.missing("things", "contract/third@3")}
        assert [one.id for one in store.missing("things", MODEL)] == ["d"]
        with pytest.raises(InvalidArgument, match="no other"):
            store.discard("things", NEW)
        store.add_vectors([record("d", 0, 1, text="新的")])
        assert store.discard("things", NEW) == 4
        assert ids(store.search("things", vector(0, 1), 1)) == ["d"]
        assert store.check() == []

    def test_what_does_not_answer_can_be_let_go(self, store: SwitchingStore) -> None:
        switch(store)
        with pytest.raises(InvalidArgument, match="answer"):
            store.discard("things", NEW)
        assert store.discard("things", MODEL) == 3
        assert store.discard("things", MODEL) == 0
        assert [one.model for one in store.spaces("things")] == [NEW]
        assert len(store.search("things", new_vector(1))) == 3
        assert store.check() == []

    def test_a_model_that_comes_back_after_it_was_let_go_is_searched_anew(
        self, store: SwitchingStore, open_store: OpenSwitching
    ) -> None:
        reader = open_store()
        assert len(reader.search("things", vector(1))) == 3
        switch(store)
        store.discard("things", MODEL)
        store.stage("things", MODEL, WIDTH)
        store.add_vectors([record(one.id, 0, 1, text=one.text) for one in store.missing("things", MODEL)])
        assert store.activate("things", MODEL) == 0
        assert ids(reader.search("things", vector(0, 1))) == ["a", "b", "c"]
        reader.close()

    def test_other_collections_stay_as_they_are(self, store: SwitchingStore) -> None:
        store.upsert([record("x", 1, text="别处", collection="other")])
        switch(store)
        store.discard("things", MODEL)
        assert store.model_of("other") == MODEL
        assert ids(store.search("other", vector(1))) == ["x"]
        switch(store, "other")
        assert ids(store.search("other", new_vector(1))) == ["x"]
        assert store.drop("things") == 4
        assert ids(store.search("other", new_vector(1))) == ["x"]
        assert store.check() == []

    def test_a_dropped_collection_takes_its_staged_vectors_along(self, store: SwitchingStore) -> None:
        store.stage("things", NEW, NEW_WIDTH)
        store.add_vectors(embedded(store.missing("things", NEW), 1))
        store.drop("things")
        assert store.spaces("things") == []
        store.upsert([record("a", 1, text="重来")])
        assert store.spaces("things") == [SpaceInfo(MODEL, WIDTH, 1, True)]
        assert store.check() == []

    def test_bad_input_is_refused(self, store: SwitchingStore) -> None:
        with pytest.raises(InvalidArgument, match="stage the model first"):
            store.activate("things", NEW)
        with pytest.raises(InvalidArgument, match="stage the model first"):
            store.add_vectors(embedded(store.missing("things", NEW), 1))
        for model, width in (("", 3), ("m", 0), ("m", True)):
            with pytest.raises(InvalidArgument):
                store.stage("things", model, width)
        with pytest.raises(DimensionMismatch):
            store.stage("things", MODEL, WIDTH + 1)
        store.stage("things", NEW, NEW_WIDTH)
        with pytest.raises(InvalidArgument):
            store.add_vectors([VectorRecord("a", "things", np.zeros(NEW_WIDTH, np.float32), {}, "打开灯", NEW)])
        assert store.activate("nothing", NEW) == 0
        store.stage("nothing", NEW, NEW_WIDTH)
        assert store.spaces("nothing") == []

    def test_another_opening_sees_the_flip_at_once(self, store: SwitchingStore, open_store: OpenSwitching) -> None:
        other = open_store()
        assert len(other.search("things", vector(1))) == 3
        switch(store)
        assert other.model_of("things") == NEW
        assert len(other.search("things", new_vector(1), options=SearchOptions(model=NEW))) == 3
        other.close()

    def test_searches_beside_a_flip_see_one_model_or_the_other_and_never_nothing(self, store: SwitchingStore) -> None:
        failures: list[object] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                model = store.model_of("things")
                query = vector(1) if model == MODEL else new_vector(1)
                try:
                    found = store.search("things", query, options=SearchOptions(model=model))
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
        switch(store)
        for _ in range(5):
            store.activate("things", MODEL)
            store.activate("things", NEW)
        done.set()
        for thread in threads:
            thread.join()
        assert failures == []
