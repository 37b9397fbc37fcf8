"""What every store promises, as tests that any engine runs.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "data")     # called again, it opens the same data

The suite closes what it opens. It asks only what `homing.stores.Store` promises, nothing about an engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch, StoreError
from homing.records import Match, VectorRecord
from homing.stores.store import MAX_LIMIT, SearchOptions, Store
from homing.vectors import Vector

OpenStore = Callable[[], Store]

MODEL = "contract/model@8"
WIDTH = 8


def vector(*values: float) -> Vector:
    """A vector that begins with these values and is zero otherwise."""
    row = np.zeros(WIDTH, np.float32)
    row[: len(values)] = values
    return row


def record(
    name: str,
    *values: float,
    text: str = "",
    collection: str = "things",
    model: str = MODEL,
    keywords: str | None = None,
    **metadata: Any,
) -> VectorRecord:
    """A record; without values it has no vector."""
    embedding = vector(*values) if values else None
    return VectorRecord(name, collection, embedding, metadata, text, model if values else "", keywords)


def ids(matches: list[Match]) -> list[str]:
    """The ids of an answer, in its order."""
    return [match.id for match in matches]


def only(**pairs: Any) -> SearchOptions:
    """A metadata filter."""
    return SearchOptions(pairs)


class StoreContract:
    """Subclass it and give it the fixture `open_store`."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """A function that opens the store; called again it opens the same data."""
        raise NotImplementedError("override the fixture `open_store`")

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        """An empty store."""
        opened = open_store()
        yield opened
        opened.close()

    # Writing and reading back

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

    def test_an_upsert_without_a_vector_takes_the_old_vector_away(self, store: Store) -> None:
        store.upsert([record("a", 1, text="words")])
        store.upsert([record("a", text="words")])
        assert store.search("things", vector(1)) == []
        assert ids(store.search_text("things", "words")) == ["a"]

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
        assert all(found.embedding is not None and found.text == found.id for found in listed)

    # Deleting

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

    # Collections

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
        assert store.delete("nowhere", ["a"]) == 0
        assert store.drop("nowhere") == 0

    def test_collections_of_two_widths_live_side_by_side(self, store: Store) -> None:
        store.upsert([record("a", 1), VectorRecord("b", "small", np.ones(3, np.float32), {}, "", "other@3")])
        assert ids(store.search("things", vector(1))) == ["a"]
        assert ids(store.search("small", np.ones(3, np.float32))) == ["b"]

    # Searching by vector

    def test_matches_come_by_distance_which_is_one_minus_cosine(self, store: Store) -> None:
        store.upsert([record("far", -1), record("near", 2, 0), record("side", 0, 5), record("between", 1, 1)])
        found = store.search("things", vector(9))
        assert ids(found) == ["near", "between", "side", "far"]
        assert [match.distance for match in found] == pytest.approx([0, 1 - 2**-0.5, 1, 2], abs=1e-5)
        assert all(match.collection == "things" for match in found)

    def test_equal_distances_come_by_id(self, store: Store) -> None:
        names = [f"{number * 37 % 200:03d}" for number in range(200)]
        store.upsert([record(name, 1, 1) for name in names])
        assert ids(store.search("things", vector(1), limit=7)) == [f"{number:03d}" for number in range(7)]

    def test_the_limit_is_kept(self, store: Store) -> None:
        store.upsert([record(f"{number:02d}", 1, number / 50) for number in range(50)])
        assert ids(store.search("things", vector(1), limit=3)) == ["00", "01", "02"]
        assert len(store.search("things", vector(1))) == 10
        assert len(store.search("things", vector(1), limit=MAX_LIMIT)) == 50
        assert store.search("things", vector(1), limit=0) == []

    def test_the_nearest_are_found_among_many(self, store: Store) -> None:
        made = np.random.default_rng(7)
        rows = made.standard_normal((3000, WIDTH)).astype(np.float32)
        store.upsert([VectorRecord(f"{n:04d}", "things", row, {}, "", MODEL) for n, row in enumerate(rows)])
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for query in made.standard_normal((20, WIDTH)).astype(np.float32):
            best = np.argsort(-(units @ query), kind="stable")[:10]
            assert ids(store.search("things", query)) == [f"{n:04d}" for n in best]

    def test_a_search_shows_text_and_metadata(self, store: Store) -> None:
        store.upsert([record("a", 1, text="卧室灯 📎", room="卧室", tags=["x", "y"])])
        [match] = store.search("things", vector(1))
        assert (match.text, match.metadata) == ("卧室灯 📎", {"room": "卧室", "tags": ["x", "y"]})

    # Filters

    def test_a_filter_compares_value_and_type(self, store: Store) -> None:
        store.upsert(
            [record("int", 1, v=1), record("text", 1, v="1"), record("true", 1, v=True), record("null", 1, v=None)]
        )
        for value, name in ((1, "int"), ("1", "text"), (True, "true"), (None, "null")):
            assert ids(store.search("things", vector(1), options=only(v=value))) == [name]
        assert store.search("things", vector(1), options=only(v=False)) == []
        assert store.search("things", vector(1), options=only(missing=None)) == []

    def test_a_list_in_the_metadata_matches_by_each_item(self, store: Store) -> None:
        store.upsert([record("a", 1, text="灯", tags=["红", "x"]), record("b", 1, text="灯", tags=["蓝"])])
        assert ids(store.search("things", vector(1), options=only(tags="红"))) == ["a"]
        assert ids(store.search_text("things", "灯", options=only(tags="蓝"))) == ["b"]

    def test_a_list_in_the_filter_means_any_of_these(self, store: Store) -> None:
        store.upsert(
            [record("a", 1, k="x"), record("b", 1, k="y"), record("c", 1, k="z"), record("d", 1, k=["x", "y"])]
        )
        assert ids(store.search("things", vector(1), options=only(k=["x", "y"]))) == ["a", "b", "d"]
        assert store.search("things", vector(1), options=only(k=[])) == []

    def test_every_pair_of_a_filter_must_match(self, store: Store) -> None:
        store.upsert(
            [record("a", 1, text="灯", k="x", n=1), record("b", 1, text="灯", k="x", n=2), record("c", 1, k="y", n=1)]
        )
        assert ids(store.search("things", vector(1), options=only(k="x", n=1))) == ["a"]
        assert ids(store.search_text("things", "灯", options=only(k="x", n=2))) == ["b"]

    def test_long_and_strange_values_are_compared_too(self, store: Store) -> None:
        long, quoted = "很长" * 500, 'it\'s "so" 100% _ \\ \n; DROP TABLE records --'
        store.upsert(
            [
                record("a", 1, v=long),
                record("b", 1, v=long + "!"),
                VectorRecord("c", "things", vector(1), {"v": quoted, "k'\" ]": 1}, "", MODEL),
            ]
        )
        assert ids(store.search("things", vector(1), options=only(v=long))) == ["a"]
        assert ids(store.search("things", vector(1), options=only(v=quoted))) == ["c"]
        assert ids(store.search("things", vector(1), options=only(**{"k'\" ]": 1}))) == ["c"]

    @pytest.mark.parametrize("rare", [3, 400])
    def test_a_filter_never_comes_back_empty_because_its_records_are_far_away(self, store: Store, rare: int) -> None:
        near = [record(f"near{number:04d}", 1, number / 9000, text="灯", who="many") for number in range(3000)]
        far = [record(f"far{number:04d}", -1, number / 100, text="灯", who="few") for number in range(rare)]
        store.upsert(near + far)
        expected = [f"far{number:04d}" for number in reversed(range(rare))][:10]
        assert ids(store.search("things", vector(1), options=only(who="few"))) == expected
        assert len(store.search_text("things", "灯", options=only(who="few"))) == min(rare, 10)

    # Searching by words, in both languages

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("卧室", "bedroom"),
            ("打开卧室的灯", "bedroom"),
            ("溫度", "temperature"),
            ("温度", "temperature"),
            ("commit", "git"),
            ("COMMIT", "git"),
            ("提交代码", "git"),
            ("ＧＰＴ－４ｏ", "model"),
            ("gpt-4o", "model"),
            ("１２３４", "number"),
            ("1234", "number"),
            ("C++", "language"),
            ("🚀", "rocket"),
            ("设备 device", "traditional"),
        ],
    )
    def test_words_are_found(self, store: Store, query: str, expected: str) -> None:
        store.upsert(
            [
                record("bedroom", text="卧室的主灯可以调节亮度"),
                record("temperature", text="读取客厅的温度传感器"),
                record("git", text="Git commit 提交代码到仓库"),
                record("model", text="使用GPT-4o回答问题"),
                record("number", text="房间号 1234 在三楼"),
                record("language", text="用 C++ 写的程序"),
                record("rocket", text="launch 🚀 today"),
                record("traditional", text="這個設備 is a device"),
            ]
        )
        assert ids(store.search_text("things", query))[0] == expected

    def test_the_more_relevant_comes_first(self, store: Store) -> None:
        store.upsert(
            [
                record("both", text="打开卧室灯"),
                record("one", text="打开窗户透透气"),
                record("none", text="hello world"),
            ]
        )
        found = store.search_text("things", "打开卧室灯")
        assert ids(found) == ["both", "one"]
        first, second = (match.score for match in found)
        assert first is not None
        assert second is not None
        assert first > second
        assert all(match.distance is None for match in found)

    def test_equal_relevance_comes_by_id(self, store: Store) -> None:
        names = [f"{number * 37 % 200:03d}" for number in range(200)]
        store.upsert([record(name, text="same words 一样的话") for name in names])
        assert ids(store.search_text("things", "一样", limit=7)) == [f"{number:03d}" for number in range(7)]

    def test_keywords_stand_in_for_the_text_where_given(self, store: Store) -> None:
        store.upsert([record("a", text="visible", keywords="hidden 隐藏")])
        assert ids(store.search_text("things", "隐藏")) == ["a"]
        assert store.search_text("things", "visible") == []
        assert [match.text for match in store.search_text("things", "hidden")] == ["visible"]

    @pytest.mark.parametrize(
        "query",
        [
            '"',
            "'",
            "?",
            "*",
            "a AND",
            "NEAR(a b)",
            "words : a",
            "-a",
            "a OR",
            "(",
            "^a",
            "{a b}:c",
            ";",
            "%",
            "\\",
            "a\0b",
        ],
    )
    def test_no_query_is_an_operator(self, store: Store, query: str) -> None:
        store.upsert([record("x", text="nothing of it 卧室")])
        store.search_text("things", query)
        assert ids(store.search_text("things", f"{query} 卧室")) == ["x"]

    @pytest.mark.parametrize("query", ["", "   ", "\n", "，。！", "\ud800"])
    def test_a_query_without_words_finds_nothing(self, store: Store, query: str) -> None:
        store.upsert([record("x", text="something 一些")])
        assert store.search_text("things", query) == []

    def test_a_query_of_a_megabyte_is_answered(self, store: Store) -> None:
        store.upsert([record("x", text="needle 针")])
        assert ids(store.search_text("things", "针 " + "草" * 1_000_000)) == ["x"]

    # Strange texts and bad input

    @pytest.mark.parametrize(
        "text", ["a\0b", "\ud83d half", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "", "\r\n\t", "𠮷野家"]
    )
    def test_any_text_is_kept_whole(self, store: Store, text: str) -> None:
        store.upsert([VectorRecord("a", "things", vector(1), {"note": text, text: 1}, text, MODEL)])
        [found] = store.get("things", ["a"])
        assert (found.text, found.metadata["note"]) == (text, text)
        assert ids(store.search("things", vector(1), options=only(note=text))) == ["a"]

    @pytest.mark.parametrize("name", ["猫", "a b", "it's", '"', "🚀", "a/b?c=d&e", "%_", "x" * 2000, " ", "1"])
    def test_any_name_is_a_name(self, store: Store, name: str) -> None:
        store.upsert([record(name, 1, text="words", collection=name), record("other", 1, text="words")])
        assert ids(store.search(name, vector(1))) == [name]
        assert ids(store.search_text(name, "words")) == [name]
        assert [found.id for found in store.get(name, [name])] == [name]
        assert store.delete(name, [name]) == 1

    @pytest.mark.parametrize("name", ["", "a\0b", "\ud800", 7, None])
    def test_what_cannot_be_a_name_is_refused(self, store: Store, name: Any) -> None:
        for call in (
            lambda: store.upsert([record(name, 1)]),
            lambda: store.upsert([record("a", 1, collection=name)]),
            lambda: store.search(name, vector(1)),
            lambda: store.search_text(name, "x"),
            lambda: store.get("things", [name]),
            lambda: store.delete("things", [name]),
            lambda: store.drop(name),
        ):
            with pytest.raises(InvalidArgument):
                call()

    @pytest.mark.parametrize("limit", [-1, MAX_LIMIT + 1, 1.5, "3", None, True])
    def test_an_impossible_limit_is_refused(self, store: Store, limit: Any) -> None:
        with pytest.raises(InvalidArgument):
            store.search("things", vector(1), limit=limit)
        with pytest.raises(InvalidArgument):
            store.search_text("things", "x", limit=limit)

    @pytest.mark.parametrize("bad", [vector(), vector(float("nan")), vector(float("inf"))])
    def test_a_vector_without_direction_is_refused(self, store: Store, bad: Vector) -> None:
        with pytest.raises(InvalidArgument):
            store.upsert([VectorRecord("a", "things", bad, {}, "", MODEL)])
        with pytest.raises(InvalidArgument):
            store.search("things", bad)

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

    @pytest.mark.parametrize(
        ("metadata", "path"),
        [
            ({"a": object()}, "metadata.a"),
            ({"a": {"b": [1, {2, 3}]}}, "metadata.a.b[1]"),
            ({"a": float("nan")}, "metadata.a"),
            ({"a": b"bytes"}, "metadata.a"),
        ],
    )
    def test_metadata_that_json_cannot_hold_is_refused_by_its_path(
        self, store: Store, metadata: dict[str, Any], path: str
    ) -> None:
        with pytest.raises(InvalidArgument) as refused:
            store.upsert([VectorRecord("a", "things", vector(1), metadata, "", MODEL)])
        assert refused.value.details["path"] == path
        assert path in refused.value.message

    def test_metadata_keys_are_text(self, store: Store) -> None:
        with pytest.raises(InvalidArgument):
            store.upsert([VectorRecord("a", "things", vector(1), {1: "x"}, "", MODEL)])  # type: ignore[dict-item]

    # All or nothing

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

    # Opening again, closing, threads

    def test_what_was_written_is_there_after_opening_again(self, open_store: OpenStore) -> None:
        store = open_store()
        store.upsert([record("a", 1, text="持久 durable", kind="x"), record("b", 0, 1, text="gone")])
        store.delete("things", ["b"])
        store.close()
        again = open_store()
        try:
            assert ids(again.search("things", vector(1), options=only(kind="x"))) == ["a"]
            assert ids(again.search_text("things", "持久")) == ["a"]
            assert ids(again.search("things", vector(0, 1))) == ["a"]
            again.upsert([record("c", 1, text="more")])
            assert ids(again.search("things", vector(1))) == ["a", "c"]
        finally:
            again.close()

    def test_a_second_store_on_the_same_data_sees_every_change(self, open_store: OpenStore) -> None:
        one, two = open_store(), open_store()
        try:
            for number in range(30):
                one.upsert([record(f"{number:02d}", 1, number / 10, text=f"词{number}")])
                assert len(two.search("things", vector(1), limit=100)) == number + 1
                assert ids(two.search_text("things", f"词{number}"))[0] == f"{number:02d}"
            two.delete("things", ["00"])
            two.upsert([record("01", -1, text="替换")])
            assert ids(one.search("things", vector(1), limit=100)) == [f"{n:02d}" for n in range(2, 30)] + ["01"]
            two.drop("things")
            assert one.search("things", vector(1)) == []
        finally:
            one.close()
            two.close()

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
            lambda: store.delete("things", ["a"]),
            lambda: store.drop("things"),
            lambda: store.collections(),
            lambda: store.check(),
        ):
            with pytest.raises(StoreError):
                call()

    def test_threads_write_and_search_at_once(self, store: Store) -> None:
        writers, rounds = 4, 25
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
                for number in range(60):
                    store.upsert([record("a", 1, number / 1000, text="永远 always")])
            finally:
                done.set()

        with ThreadPoolExecutor(1) as pool:
            replacing = pool.submit(replace)
            while not done.is_set():
                assert ids(store.search("things", vector(1))) == ["a"]
                assert ids(store.search_text("things", "永远")) == ["a"]
            replacing.result()
