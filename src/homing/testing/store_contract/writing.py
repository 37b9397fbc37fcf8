"""What is written is kept, replaced and removed as a whole; strange input is kept or refused, never mangled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch
from homing.records import VectorRecord
from homing.stores.store import MAX_LIMIT, SearchOptions, Store
from homing.testing.store_contract.samples import MODEL, WIDTH, Opened, ids, only, record, refused, vector


class WritingContract(Opened):
    """Upsert, get, records, delete, drop, collections; any text, any name; bad limits, vectors, models and metadata."""

    def test_it_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)

    def test_a_record_comes_back_as_it_was_written(self, store: Store) -> None:
        metadata = {"n": 1, "x": 1.5, "t": True, "none": None, "list": ["a", 2], "deep": {"k": ["v"]}, "名": "值"}
        written = VectorRecord("a", "things", vector(3, 4), metadata, "打开 the light", MODEL, "灯 light")
        assert store.upsert([written]) == 1
        [found] = store.get("things", ["a"])
        assert (found.id, found.collection, found.metadata) == ("a", "things", metadata)
        assert (found.text, found.model, found.keywords) == ("打开 the light", MODEL, "灯 light")
        assert found.embedding is not None
        np.testing.assert_allclose(found.embedding, vector(0.6, 0.8), atol=1e-6)

    def test_a_record_without_a_vector_comes_back_without_one(self, store: Store) -> None:
        store.upsert([record("a", text="no vector yet")])
        [found] = store.get("things", ["a"])
        assert found.embedding is None
        assert found.model == ""

    def test_get_answers_in_the_order_asked_for_and_leaves_out_what_is_not_there(self, store: Store) -> None:
        store.upsert([record("a", 1), record("b", 1), record("c", 1)])
        assert [found.id for found in store.get("things", ["c", "nobody", "a"])] == ["c", "a"]
        assert store.get("things", []) == []

    def test_an_upsert_replaces_everything_of_a_record(self, store: Store) -> None:
        store.upsert([record("a", 1, 0, text="old words", kind="old"), record("b", 0.5, 0.5, text="other")])
        store.upsert([record("a", 0, 1, text="new words", kind="new")])
        assert [found.text for found in store.get("things", ["a"])] == ["new words"]
        assert ids(store.search("things", vector(1, 0))) == ["b", "a"]
        assert store.search_text("things", "old") == []
        assert ids(store.search_text("things", "new")) == ["a"]
        assert store.search("things", vector(1), options=only(kind="old")) == []
        assert ids(store.search("things", vector(1), options=only(kind="new"))) == ["a"]
        assert [(info.records, info.embedded) for info in store.collections()] == [(2, 2)]

    def test_another_text_without_a_vector_takes_the_old_vector_away(self, store: Store) -> None:
        store.upsert([record("a", 1, text="words")])
        store.upsert([record("a", text="other words")])
        assert store.search("things", vector(1)) == []
        assert ids(store.search_text("things", "words")) == ["a"]

    def test_the_same_text_with_other_metadata_keeps_its_vector(self, store: Store) -> None:
        store.upsert([record("a", 1, text="words", place="here")])
        store.upsert([record("a", text="words", place="there")])
        assert ids(store.search("things", vector(1), 10, only(place="there"))) == ["a"]
        assert ids(store.search_text("things", "words", 10, only(place="there"))) == ["a"]
        assert store.search("things", vector(1), 10, only(place="here")) == []
        assert store.check() == []

    def test_nothing_is_wrong_after_what_was_found_is_deleted(self, store: Store) -> None:
        store.upsert([record("a", 1, text="words")])
        assert ids(store.search_text("things", "words")) == ["a"]
        store.delete("things", ["a"])
        assert store.search_text("things", "words") == []
        assert store.check() == []

    def test_a_vector_can_be_added_later(self, store: Store) -> None:
        store.upsert([record("a", text="words")])
        assert store.search("things", vector(1)) == []
        store.upsert([record("a", 1, text="words")])
        assert ids(store.search("things", vector(1))) == ["a"]

    def test_of_records_with_one_key_in_a_call_the_last_wins(self, store: Store) -> None:
        assert store.upsert([record("a", 1, text="first"), record("a", 0, 1, text="second")]) == 1
        assert [found.text for found in store.get("things", ["a"])] == ["second"]
        assert len(list(store.records("things"))) == 1

    def test_nothing_written_is_nothing(self, store: Store) -> None:
        assert store.upsert([]) == 0
        assert store.collections() == []

    def test_records_can_come_from_a_generator(self, store: Store) -> None:
        assert store.upsert(record(str(number), 1) for number in range(5)) == 5

    def test_records_lists_all_by_id(self, store: Store) -> None:
        names = [f"{number * 7919 % 1300:05d}" for number in range(1300)]
        store.upsert([record(name, 1, text=name) for name in names])
        listed = list(store.records("things"))
        assert [found.id for found in listed] == sorted(names)
        assert store.ids("things") == sorted(names)
        assert all(found.embedding is not None and found.text == found.id for found in listed)

    def test_ids_are_in_the_order_of_records_whatever_they_are_made_of(self, store: Store) -> None:
        store.upsert([record(name, 1) for name in ("b", "B", "a", "灯", "燈", "é", "a b", "10", "9", "😀")])
        store.upsert([record("x", 1, collection="others")])
        store.delete("things", ["a"])
        assert store.ids("things") == [found.id for found in store.records("things")]
        assert set(store.ids("things")) == {"b", "B", "灯", "燈", "é", "a b", "10", "9", "😀"}

    def test_a_deleted_record_is_gone_from_every_search(self, store: Store) -> None:
        store.upsert([record("a", 1, text="light", kind="x"), record("b", 1, text="light", kind="x")])
        assert store.delete("things", ["a", "nobody"]) == 1
        assert store.get("things", ["a"]) == []
        assert ids(store.search("things", vector(1))) == ["b"]
        assert ids(store.search_text("things", "light")) == ["b"]
        assert ids(store.search("things", vector(1), options=only(kind="x"))) == ["b"]
        assert store.delete("things", ["a"]) == 0

    def test_a_deleted_record_can_be_written_again(self, store: Store) -> None:
        store.upsert([record("a", 1, text="light")])
        store.delete("things", ["a"])
        store.upsert([record("a", 0, 1, text="lamp")])
        assert ids(store.search("things", vector(0, 1))) == ["a"]
        assert store.search_text("things", "light") == []

    def test_dropping_a_collection_leaves_the_others(self, store: Store) -> None:
        store.upsert([record("a", 1, text="light"), record("a", 1, text="light", collection="others")])
        assert store.drop("things") == 1
        assert store.drop("things") == 0
        assert store.search("things", vector(1)) == []
        assert store.search_text("things", "light") == []
        assert ids(store.search("others", vector(1))) == ["a"]
        assert [info.name for info in store.collections()] == ["others"]

    def test_a_dropped_collection_can_be_filled_by_another_model(self, store: Store) -> None:
        store.upsert([record("a", 1, text="light")])
        store.drop("things")
        store.upsert([VectorRecord("b", "things", np.ones(4, np.float32), {}, "lamp", "other/model@4")])
        assert ids(store.search("things", np.ones(4, np.float32))) == ["b"]

    def test_collections_keep_apart(self, store: Store) -> None:
        store.upsert([record("a", 1, text="light one"), record("a", 0, 1, text="light two", collection="others")])
        assert [match.text for match in store.search("things", vector(1))] == ["light one"]
        assert [match.text for match in store.search_text("others", "light")] == ["light two"]
        store.delete("things", ["a"])
        assert [found.text for found in store.get("others", ["a"])] == ["light two"]

    def test_collections_say_what_is_in_them(self, store: Store) -> None:
        store.upsert([record("a", 1), record("b"), record("x", collection="none")])
        things, none = sorted(store.collections(), key=lambda info: info.name != "things")
        assert (things.name, things.records, things.embedded) == ("things", 2, 1)
        assert (things.model, things.dimensions) == (MODEL, WIDTH)
        assert (none.name, none.records, none.embedded) == ("none", 1, 0)

    def test_an_unknown_collection_is_empty(self, store: Store) -> None:
        assert store.search("nowhere", vector(1)) == []
        assert store.search_text("nowhere", "light") == []
        assert store.get("nowhere", ["a"]) == []
        assert list(store.records("nowhere")) == []
        assert store.ids("nowhere") == []
        assert store.delete("nowhere", ["a"]) == 0
        assert store.drop("nowhere") == 0

    def test_collections_of_two_widths_live_side_by_side(self, store: Store) -> None:
        store.upsert([record("a", 1), VectorRecord("b", "small", np.ones(3, np.float32), {}, "", "other@3")])
        assert ids(store.search("things", vector(1))) == ["a"]
        assert ids(store.search("small", np.ones(3, np.float32))) == ["b"]

    def test_a_call_that_fails_changes_nothing(self, store: Store) -> None:
        store.upsert([record("a", 1, text="before", kind="old")])
        bad = VectorRecord("z", "things", np.ones(3, np.float32), {}, "", MODEL)
        for batch in ([record("a", 0, 1, text="after"), bad], [record("n", 1, collection="new"), record("b", 1), bad]):
            with pytest.raises(InvalidArgument):
                store.upsert(batch)
        assert [found.text for found in store.get("things", ["a"])] == ["before"]
        assert ids(store.search_text("things", "before")) == ["a"]
        assert store.search_text("things", "after") == []
        assert [(info.name, info.records) for info in store.collections()] == [("things", 1)]

    def test_a_generator_that_fails_changes_nothing(self, store: Store) -> None:
        def broken() -> Iterator[VectorRecord]:
            yield record("a", 1)
            raise RuntimeError("the source broke")

        with pytest.raises(RuntimeError):
            store.upsert(broken())
        assert store.get("things", ["a"]) == []

    def test_any_text_is_kept_whole(self, store: Store) -> None:
        family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
        texts = {
            str(number): text for number, text in enumerate(("a\0b", "\ud83d half", family, "", "\r\n\t", "𠮷野家"))
        }
        store.upsert(
            VectorRecord(name, "things", vector(1), {"note": text, text: 1}, text, MODEL)
            for name, text in texts.items()
        )
        kept = store.get("things", list(texts))
        assert len(kept) == len(texts)
        for found in kept:
            text = texts[found.id]
            assert (found.text, found.metadata["note"], found.metadata[text]) == (text, text, 1)
            assert ids(store.search("things", vector(1), options=only(note=text))) == [found.id]

    def test_any_name_is_a_name(self, store: Store) -> None:
        for name in ("猫", "a b", "it's", '"', "🚀", "a/b?c=d&e", "%_", "x" * 2000, " ", "1"):
            store.upsert([record(name, 1, text="words", collection=name), record("other", 1, text="words")])
            assert ids(store.search(name, vector(1))) == [name]
            assert ids(store.search_text(name, "words")) == [name]
            assert [found.id for found in store.get(name, [name])] == [name]
            assert store.delete(name, [name]) == 1

    def test_what_cannot_be_a_name_is_refused(self, store: Store) -> None:
        names: list[Any] = ["", "a\0b", "\ud800", 7, None]
        for name in names:
            refused(partial(store.upsert, [record(name, 1)]), name)
            refused(partial(store.upsert, [record("a", 1, collection=name)]), name)
            refused(partial(store.search, name, vector(1)), name)
            refused(partial(store.search_text, name, "x"), name)
            refused(partial(store.get, "things", [name]), name)
            refused(partial(store.delete, "things", [name]), name)
            refused(partial(store.drop, name), name)

    def test_an_impossible_limit_is_refused(self, store: Store) -> None:
        limits: list[Any] = [-1, MAX_LIMIT + 1, 1.5, "3", None, True]
        for limit in limits:
            refused(partial(store.search, "things", vector(1), limit=limit), limit)
            refused(partial(store.search_text, "things", "x", limit=limit), limit)

    def test_a_vector_without_direction_is_refused(self, store: Store) -> None:
        for bad in (vector(), vector(float("nan")), vector(float("inf"))):
            refused(partial(store.upsert, [VectorRecord("a", "things", bad, {}, "", MODEL)]), bad)
            refused(partial(store.search, "things", bad), bad)

    def test_a_vector_of_another_width_is_refused(self, store: Store) -> None:
        store.upsert([record("a", 1)])
        with pytest.raises(DimensionMismatch):
            store.upsert([VectorRecord("b", "things", np.ones(3, np.float32), {}, "", MODEL)])
        with pytest.raises(DimensionMismatch):
            store.search("things", np.ones(3, np.float32))
        with pytest.raises(DimensionMismatch):
            store.upsert(
                [record("x", 1, collection="new"), VectorRecord("y", "new", np.ones(3, np.float32), {}, "", MODEL)]
            )
        assert [info.name for info in store.collections()] == ["things"]

    def test_vectors_of_two_models_never_mix(self, store: Store) -> None:
        store.upsert([record("a", 1)])
        with pytest.raises(ModelMismatch, match="contract/model@8"):
            store.upsert([record("b", 1, model="another/model@8")])
        with pytest.raises(ModelMismatch, match="contract/model@8"):
            store.search("things", vector(1), options=SearchOptions(model="another/model@8"))
        assert ids(store.search("things", vector(1), options=SearchOptions(model=MODEL))) == ["a"]
        with pytest.raises(ModelMismatch):
            store.upsert([record("x", 1, collection="new"), record("y", 1, collection="new", model="another/model@8")])

    def test_metadata_that_json_cannot_hold_is_refused_by_its_path(self, store: Store) -> None:
        def told(metadata: Any) -> InvalidArgument:
            return refused(
                partial(store.upsert, [VectorRecord("a", "things", vector(1), metadata, "", MODEL)]), metadata
            )

        for wrong, path in (
            (object(), "metadata.a"),
            ({"b": [1, {2, 3}]}, "metadata.a.b[1]"),
            (float("nan"), "metadata.a"),
            (b"bytes", "metadata.a"),
        ):
            error = told({"a": wrong})
            assert error.details["path"] == path
            assert path in error.message
        told({1: "keys are text"})
