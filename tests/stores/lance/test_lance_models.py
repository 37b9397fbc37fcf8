"""Texts, and the vectors of several models side by side: texts, put_vectors, models, missing, serve, discard."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch, StoreError
from homing.records import VectorRecord, text_hash
from homing.stores.lance import LanceStore
from homing.stores.store import MAX_LIMIT, ModelInfo, NewVector, SearchOptions, Store
from homing.testing.store_contract import MODEL, WIDTH, OpenStore, ids, only, record, vector
from homing.testing.store_contract.samples import Opened
from tests.stores.lance.embedding import NEW, NEW_WIDTH, embed, made_of, models, new


class TestModels(Opened):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: LanceStore(tmp_path / "contract")

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        """Three records with a vector of the first model and one without."""
        texts = {"a": "打开灯", "b": "关闭灯", "c": "read a file"}
        store.write([record(name, 1, at, text=text, n=at) for at, (name, text) in enumerate(texts.items())])
        store.write([record("z", text="只有关键词")])
        return store

    def test_texts_come_by_id(self, filled: Store) -> None:
        filled.write([record("odd", text="half \ud83d", keywords="x")])
        assert filled.texts("things", ["z", "nobody", "a", "odd"]) == {
            "z": "只有关键词",
            "a": "打开灯",
            "odd": "half \ud83d",
        }
        assert filled.texts("things", []) == {}
        assert filled.texts("nothing", ["a"]) == {}

    def test_a_write_that_says_the_same_keeps_the_vectors_of_every_model(self, filled: Store) -> None:
        embed(filled)
        before = filled.search_vector("things", vector(1), 10)
        filled.write(
            [record("a", text="打开灯", n="changed"), record("b", text="关闭灯", n=1), record("y", text="新的")]
        )
        assert filled.search_vector("things", vector(1), 10) == before
        assert [found.metadata for found in filled.get("things", ["a"])] == [{"n": "changed"}]
        assert ids(filled.search("things", vector(1), options=only(n="changed"))) == ["a"]
        assert models(filled) == [(MODEL, 3, True), (NEW, 4, False)]
        assert filled.missing("things", NEW) == ["y"]
        filled.serve("things", NEW)
        assert filled.search_vector("things", made_of("打开灯"), 1)[0].id == "a"
        assert filled.check() == []

    @pytest.mark.parametrize("change", [{"text": "别的"}, {"text": "打开灯", "keywords": "灯"}])
    def test_a_write_that_says_something_else_takes_them_away(self, filled: Store, change: dict[str, Any]) -> None:
        embed(filled)
        filled.write([record("a", **change)])
        assert models(filled) == [(MODEL, 2, True), (NEW, 3, False)]
        assert filled.missing("things", NEW) == ["a"]
        assert filled.missing("things", MODEL) == ["a", "z"]
        assert "a" not in {near.id for near in filled.search_vector("things", vector(1), 10)}
        assert [found.embedding for found in filled.get("things", ["a"])] == [None]
        assert filled.check() == []

    def test_a_write_with_a_vector_is_the_only_vector_of_its_record(self, filled: Store) -> None:
        embed(filled)
        filled.write([record("a", 0, 1, text="打开灯")])
        assert models(filled) == [(MODEL, 3, True), (NEW, 3, False)]
        assert filled.missing("things", NEW) == ["a"]
        assert ids(filled.search("things", vector(0, 1), 1)) == ["a"]

    def test_the_first_vectors_make_their_model_serve(self, store: Store) -> None:
        store.write([record("a", text="打开灯"), record("b", text="关闭灯")])
        assert (store.model_of("things"), store.models("things")) == ("", [])
        assert store.search_vector("things", vector(1), 5) == []
        assert store.put_vectors("things", MODEL, [NewVector("b", text_hash("关闭灯"), vector(2))]) == {"b"}
        assert store.model_of("things") == MODEL
        assert store.models("things") == [ModelInfo(MODEL, WIDTH, 1, True)]
        assert [near.id for near in store.search_vector("things", vector(1), 5)] == ["b"]
        assert store.search_vector("things", vector(1), 5)[0].cosine == pytest.approx(1)
        [found] = store.get("things", ["b"])
        assert (found.model, found.text) == (MODEL, "关闭灯")
        assert ids(store.search_text("things", "关闭")) == ["b"]
        assert store.check() == []

    def test_a_vector_is_put_only_where_the_text_is_the_one_that_was_embedded(self, filled: Store) -> None:
        waiting = [new(name, text) for name, text in filled.texts("things", ["a", "b", "c", "z"]).items()]
        filled.write([record("a", 1, text="另一个文本")])
        filled.delete("things", ["b"])
        assert filled.put_vectors("things", NEW, [*waiting, new("nobody", "nothing")]) == {"c", "z"}
        assert filled.missing("things", NEW) == ["a"]
        assert filled.get("things", ["b", "nobody"]) == []
        assert filled.put_vectors("things", NEW, waiting) == set()
        assert filled.put_vectors("nothing", NEW, waiting) == set()
        assert filled.put_vectors("things", NEW, []) == set()
        assert filled.check() == []

    def test_a_text_that_comes_back_is_the_one_that_was_embedded(self, filled: Store) -> None:
        filled.delete("things", ["a"])
        filled.write([record("a", text="打开灯", n="again")])
        assert filled.put_vectors("things", MODEL, [NewVector("a", text_hash("打开灯"), vector(0, 0, 1))]) == {"a"}
        [found] = filled.search("things", vector(0, 0, 1), 1)
        assert (found.id, found.metadata) == ("a", {"n": "again"})

    def test_another_model_is_held_beside_and_changes_no_answer(self, filled: Store) -> None:
        before = filled.search("things", vector(1))
        assert embed(filled) == {"a", "b", "c", "z"}
        assert filled.search("things", vector(1), options=SearchOptions(model=MODEL)) == before
        assert filled.model_of("things") == MODEL
        assert filled.models("things") == [ModelInfo(MODEL, WIDTH, 3, True), ModelInfo(NEW, NEW_WIDTH, 4, False)]
        with pytest.raises(ModelMismatch):
            filled.search_vector("things", made_of("打开灯"), 5, SearchOptions(model=NEW))
        with pytest.raises(ModelMismatch):
            filled.write([VectorRecord("e", "things", made_of("x"), {}, "x", NEW)])
        [info] = filled.collections()
        assert (info.model, info.dimensions, info.embedded, info.records) == (MODEL, WIDTH, 3, 4)
        assert filled.check() == []

    def test_missing_are_the_ids_without_a_vector_of_a_model_in_order(self, filled: Store) -> None:
        assert filled.missing("things", MODEL) == ["z"]
        assert filled.missing("things", NEW) == ["a", "b", "c", "z"]
        assert filled.missing("things", NEW, after="a", limit=2) == ["b", "c"]
        assert filled.missing("things", NEW, after="z") == []
        assert filled.missing("nothing", NEW) == []
        filled.put_vectors("things", NEW, [new("b", "关闭灯")])
        assert filled.missing("things", NEW) == ["a", "c", "z"]

    def test_pages_of_what_is_missing_are_all_of_it(self, store: Store) -> None:
        names = sorted(f"{number * 7919 % 1300:05d}" for number in range(1300))
        store.write([record(name, *([1.0] if int(name) % 3 else []), text=name) for name in names])
        found: list[str] = []
        while page := store.missing("things", MODEL, after=found[-1] if found else "", limit=100):
            found += page
        assert found == [name for name in names if int(name) % 3 == 0]

    def test_serving_another_model_changes_every_answer_at_once(self, filled: Store) -> None:
        embed(filled)
        filled.serve("things", NEW)
        assert filled.model_of("things") == NEW
        assert models(filled) == [(NEW, 4, True), (MODEL, 3, False)]
        near = filled.search_vector("things", made_of("关闭灯"), 1, SearchOptions(model=NEW))
        assert [one.id for one in near] == ["b"]
        assert near[0].cosine == pytest.approx(1)
        assert ids(filled.search("things", made_of("关闭灯"), options=SearchOptions({"n": 2}, model=NEW))) == ["c"]
        with pytest.raises(ModelMismatch):
            filled.search("things", vector(1), options=SearchOptions(model=MODEL))
        [info] = filled.collections()
        assert (info.model, info.dimensions, info.embedded, info.records) == (NEW, NEW_WIDTH, 4, 4)
        assert [one.model for one in filled.records("things")] == [NEW] * 4
        [found] = filled.get("things", ["b"])
        assert (found.text, found.metadata) == ("关闭灯", {"n": 1})
        np.testing.assert_allclose(found.embedding, made_of("关闭灯"), atol=1e-6)  # type: ignore[arg-type]
        assert ids(filled.search_text("things", "关闭")) == ["b"]
        assert filled.check() == []

    def test_going_back_is_one_step_and_shows_what_was_written_since(self, filled: Store) -> None:
        before = filled.search("things", vector(1))
        embed(filled)
        filled.serve("things", NEW)
        filled.serve("things", MODEL)
        assert filled.search("things", vector(1)) == before
        filled.serve("things", NEW)
        filled.serve("things", NEW)
        filled.write([VectorRecord("d", "things", made_of("新的"), {}, "新的", NEW)])
        filled.serve("things", MODEL)
        assert filled.search("things", vector(1)) == before
        assert filled.missing("things", MODEL) == ["d", "z"]
        assert filled.put_vectors("things", MODEL, [new("d", "新的", WIDTH)]) == {"d"}
        assert ids(filled.search("things", made_of("新的", WIDTH), 1)) == ["d"]
        assert filled.check() == []

    def test_a_model_can_serve_while_some_lack_its_vectors(self, filled: Store) -> None:
        filled.put_vectors("things", NEW, [new("c", "read a file")])
        filled.serve("things", NEW)
        assert [near.id for near in filled.search_vector("things", made_of("x"), 10)] == ["c"]
        assert embed(filled) == {"a", "b", "z"}
        assert len(filled.search_vector("things", made_of("x"), 10)) == 4

    def test_what_does_not_serve_can_be_let_go(self, filled: Store) -> None:
        embed(filled)
        with pytest.raises(InvalidArgument, match="serves"):
            filled.discard("things", MODEL)
        filled.serve("things", NEW)
        assert filled.discard("things", MODEL) == 3
        assert filled.discard("things", MODEL) == 0
        assert filled.discard("nothing", MODEL) == 0
        assert models(filled) == [(NEW, 4, True)]
        assert len(filled.search("things", made_of("x"))) == 4
        assert filled.check() == []

    def test_a_model_that_comes_back_is_searched_anew(self, filled: Store, open_store: OpenStore) -> None:
        reader = open_store()
        assert len(reader.search("things", vector(1))) == 3
        embed(filled)
        filled.serve("things", NEW)
        filled.discard("things", MODEL)
        assert embed(filled, MODEL, WIDTH) == {"a", "b", "c", "z"}
        filled.serve("things", MODEL)
        assert ids(reader.search("things", made_of("关闭灯", WIDTH), 1)) == ["b"]
        reader.close()

    def test_a_model_whose_vectors_are_all_gone_makes_room_for_the_next(self, store: Store) -> None:
        store.write([record("a", 1, text="打开灯")])
        store.write([record("a", text="关闭灯")])
        assert (store.model_of("things"), store.models("things")) == ("", [])
        assert store.put_vectors("things", NEW, [new("a", "关闭灯")]) == {"a"}
        assert models(store) == [(NEW, 1, True)]
        store.write([record("a", 1, text="打开灯")])
        assert models(store) == [(MODEL, 1, True)]
        store.write([VectorRecord("a", "things", np.ones(3, np.float32), {}, "x", MODEL)])
        assert store.models("things") == [ModelInfo(MODEL, 3, 1, True)]
        assert store.check() == []

    def test_three_models_at_once(self, filled: Store) -> None:
        embed(filled)
        embed(filled, "contract/third@3", 3)
        assert sorted(models(filled)[1:]) == [(NEW, 4, False), ("contract/third@3", 4, False)]
        filled.serve("things", "contract/third@3")
        assert filled.search_vector("things", made_of("关闭灯", 3), 1)[0].id == "b"
        filled.write([record("a", text="打开灯", n="kept")])
        assert filled.discard("things", NEW) == 4
        filled.serve("things", MODEL)
        assert len(filled.search("things", vector(1))) == 3

    def test_deletes_take_the_vectors_of_every_model(self, filled: Store) -> None:
        embed(filled)
        filled.delete("things", ["a"])
        assert models(filled) == [(MODEL, 2, True), (NEW, 3, False)]
        filled.drop("things")
        assert filled.models("things") == []
        filled.write([record("a", 1, text="重来")])
        assert models(filled) == [(MODEL, 1, True)]
        assert filled.check() == []

    def test_other_collections_stay_as_they_are(self, filled: Store) -> None:
        filled.write([record("x", 1, text="别处", collection="other")])
        embed(filled)
        filled.serve("things", NEW)
        filled.discard("things", MODEL)
        assert models(filled, "other") == [(MODEL, 1, True)]
        assert ids(filled.search("other", vector(1))) == ["x"]

    def test_what_cannot_be_is_refused(self, filled: Store) -> None:
        embed(filled)
        with pytest.raises(InvalidArgument, match="no vectors"):
            filled.serve("things", "contract/nobody@3")
        filled.serve("nothing", NEW)
        with pytest.raises(DimensionMismatch):
            filled.put_vectors("things", NEW, [NewVector("a", text_hash("打开灯"), vector(1))])
        with pytest.raises(DimensionMismatch):
            filled.put_vectors("things", "m", [new("a", "打开灯"), new("b", "关闭灯", 3)])
        with pytest.raises(InvalidArgument):
            filled.put_vectors("things", "m", [NewVector("a", text_hash("打开灯"), np.zeros(3, np.float32))])
        with pytest.raises(InvalidArgument):
            filled.put_vectors("things", "", [new("a", "打开灯")])
        for call in (filled.models, filled.model_of):
            with pytest.raises(InvalidArgument):
                call("")
        with pytest.raises(InvalidArgument):
            filled.missing("things", NEW, limit=MAX_LIMIT + 1)
        assert [info.model for info in filled.models("things")] == [MODEL, NEW]

    def test_a_closed_store_refuses_these_calls_too(self, open_store: OpenStore) -> None:
        store = open_store()
        store.write([record("a", 1, text="灯")])
        store.close()
        for call in (
            lambda: store.write([record("b", 1)]),
            lambda: store.texts("things", ["a"]),
            lambda: store.search_vector("things", vector(1), 1),
            lambda: store.search_words("things", "灯", 1),
            lambda: store.measure("things", ["a"], query="灯"),
            lambda: store.put_vectors("things", MODEL, [new("a", "灯", WIDTH)]),
            lambda: store.models("things"),
            lambda: store.model_of("things"),
            lambda: store.missing("things", MODEL),
            lambda: store.serve("things", MODEL),
            lambda: store.discard("things", MODEL),
        ):
            with pytest.raises(StoreError):
                call()

    def test_another_opening_sees_everything_at_once(self, filled: Store, open_store: OpenStore) -> None:
        other = open_store()
        assert len(other.search("things", vector(1))) == 3
        embed(filled)
        assert models(other) == [(MODEL, 3, True), (NEW, 4, False)]
        filled.serve("things", NEW)
        assert other.model_of("things") == NEW
        assert len(other.search("things", made_of("x"), options=SearchOptions(model=NEW))) == 4
        filled.discard("things", MODEL)
        assert models(other) == [(NEW, 4, True)]
        other.close()

    def test_searches_beside_a_flip_see_one_model_or_the_other_and_never_nothing(self, filled: Store) -> None:
        filled.put_vectors("things", MODEL, [new("z", "只有关键词", WIDTH)])
        embed(filled)
        failures: list[object] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                model = filled.model_of("things")
                query = vector(1) if model == MODEL else made_of("x")
                try:
                    found = filled.search_vector("things", query, 10, SearchOptions(model=model))
                except ModelMismatch:
                    continue
                except (StoreError, InvalidArgument, ValueError) as error:
                    failures.append(error)
                    return
                if len(found) != 4:
                    failures.append(found)

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                filled.serve("things", NEW)
                filled.discard("things", MODEL)
                embed(filled, MODEL, WIDTH)
                filled.serve("things", MODEL)
                filled.discard("things", NEW)
                embed(filled)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        assert failures == []
