"""The nearest records, the records that share words, and only those that a filter lets through.

Words are found in both languages, and a query is never more than words. A filter means in both legs what
`homing.stores.filters.matches` says, for any tree.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

from homing.errors import DimensionMismatch, ModelMismatch
from homing.records import VectorRecord
from homing.stores.filters import matches, wanted
from homing.stores.store import MAX_LIMIT, SearchOptions, Store, Words
from homing.testing.store_contract.samples import MODEL, WIDTH, Opened, ids, only, record, refused, vector

VALUES: tuple[Any, ...] = (
    *(0, 1, 1.0, 2.5, -3, "1", "a", "abc", "数据", "數", "", True, False, None),
    "x" * 200,
    {"a": 1},
)
KEYS = ("k", "year", "标签", 'quo"te', "it's")


def metadata(chance: Random) -> dict[str, Any]:
    """Some metadata."""
    found: dict[str, Any] = {}
    for key in KEYS:
        if chance.random() < 0.6:
            many = chance.random() < 0.3
            found[key] = chance.choices(VALUES, k=chance.randrange(4)) if many else chance.choice(VALUES)
    return found


def condition(chance: Random, depth: int = 0) -> dict[str, Any]:
    """Some filter."""
    kind = chance.random()
    if depth < 3 and kind < 0.35:
        parts = [condition(chance, depth + 1) for _ in range(chance.randint(1, 3))]
        return chance.choice([{"$and": parts}, {"$or": parts}, {"$not": parts[0]}])
    key, value = chance.choice(KEYS), chance.choice(VALUES)
    comparable = chance.choice(
        [one for one in VALUES if isinstance(one, int | float | str) and not isinstance(one, bool)]
    )
    return {
        key: chance.choice(
            [
                value,
                {"$eq": value},
                {"$ne": value},
                {"$in": chance.choices(VALUES, k=3)},
                {"$nin": chance.choices(VALUES, k=2)},
                {"$exists": chance.random() < 0.5},
                {chance.choice(["$lt", "$lte", "$gt", "$gte"]): comparable},
            ]
        )
    }


class SearchingContract(Opened):
    """Search by vector, by words, and metadata filters."""

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

    def test_a_filter_never_comes_back_empty_because_its_records_are_far_away(self, store: Store) -> None:
        records = [record(f"near{number:04d}", 1, number / 9000, text="灯", who="many") for number in range(3000)]
        rare = {"few": 3, "some": 400}
        for who, count in rare.items():
            records += [record(f"{who}{number:04d}", -1, number / 100, text="灯", who=who) for number in range(count)]
        store.upsert(records)
        for who, count in rare.items():
            expected = [f"{who}{number:04d}" for number in reversed(range(count))][:10]
            assert ids(store.search("things", vector(1), options=only(who=who))) == expected
            assert len(store.search_text("things", "灯", options=only(who=who))) == min(count, 10)

    def test_words_are_found(self, store: Store) -> None:
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
        for expected, queries in {
            "bedroom": ("卧室", "打开卧室的灯"),
            "temperature": ("溫度", "温度"),
            "git": ("commit", "COMMIT", "提交代码"),
            "model": ("ＧＰＴ－４ｏ", "gpt-4o"),
            "number": ("１２３４", "1234"),
            "language": ("C++",),
            "rocket": ("🚀",),
            "traditional": ("设备 device",),
        }.items():
            for query in queries:
                assert ids(store.search_text("things", query))[0] == expected, query

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

    def test_no_query_is_an_operator(self, store: Store) -> None:
        store.upsert([record("x", text="nothing of it 卧室")])
        for query in (*"\"'?*(;%\\", "a AND", "NEAR(a b)", "words : a", "-a", "a OR", "^a", "{a b}:c", "a\0b"):
            store.search_text("things", query)
            assert ids(store.search_text("things", f"{query} 卧室")) == ["x"], query

    def test_a_query_without_words_finds_nothing(self, store: Store) -> None:
        store.upsert([record("x", text="something 一些")])
        for query in ("", "   ", "\n", "，。！", "\ud800"):
            assert store.search_text("things", query) == [], query

    def test_a_query_of_a_megabyte_is_answered(self, store: Store) -> None:
        store.upsert([record("x", text="needle 针")])
        assert ids(store.search_text("things", "针 " + "草" * 1_000_000)) == ["x"]

    def test_any_tree_of_conditions_means_the_same_in_both_legs_and_in_a_list_of_ids(self, store: Store) -> None:
        chance = Random(7)
        known = {f"r{number}": metadata(chance) for number in range(80)}
        store.upsert(
            record(name, 1, number / 100, text="words", **one) for number, (name, one) in enumerate(known.items())
        )
        for _ in range(120):
            options = SearchOptions(condition(chance))
            expected = {name for name, one in known.items() if matches(wanted(options), one)}
            near = {one.id for one in store.search("things", vector(1), 100, options)}
            worded = {one.id for one in store.search_text("things", "words", 100, options)}
            assert (near, worded) == (expected, expected), options.metadata_filter
            assert store.ids("things", options) == sorted(expected), options.metadata_filter

    def test_what_is_no_condition_is_refused_with_its_place(self, store: Store) -> None:
        store.upsert([record("a", 1, text="words")])
        wrong: tuple[dict[str, Any], ...] = (
            {"$where": 1},
            {"k": {"$like": "x"}},
            {"k": {"$gt": None}},
            {"k": {"$gt": float("nan")}},
            {"k": {"$in": 3}},
            {"k": {"$exists": 1}},
            {"$or": []},
            {"$and": {"k": 1}},
            {"$not": 3},
        )
        for options in map(SearchOptions, wrong):
            for search in (partial(store.search, "things", vector(1)), partial(store.search_text, "things", "words")):
                assert "metadata_filter" in refused(partial(search, 10, options), options).message


class LegsContract(Opened):
    """Searching by vector and by words without reading the records, measuring, and reading texts only."""

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        """A store with records that have a vector, words, both, or neither."""
        store.write(
            [
                record("both", 1, 0, text="打开卧室的灯 lamp", room="卧室"),
                record("twin", 1, 0, text="打开卧室的灯 lamp", room="客厅"),
                record("near", 1, 0.5, text="关闭窗户", room="卧室"),
                record("far", -1, text="读取温度 temperature lamp", room="客厅"),
                record("words", text="卧室的温度 lamp lamp", room="卧室"),
                record("bare", text=""),
            ]
        )
        return store

    def test_the_nearest_come_with_their_cosines(self, filled: Store) -> None:
        found = filled.search_vector("things", vector(2), 10)
        assert ids(found) == ["both", "twin", "near", "far"]
        assert [one.cosine for one in found] == pytest.approx([1, 1, 0.8**0.5, -1], abs=1e-6)
        assert ids(found) == ids(filled.search("things", vector(2)))
        assert ids(filled.search_vector("things", vector(2), 1)) == ["both"]
        assert ids(filled.search_vector("things", vector(2), 9, only(room="客厅"))) == ["twin", "far"]
        assert filled.search_vector("things", vector(2), 0) == []
        assert filled.search_vector("nothing", vector(2), 10) == []

    def test_a_query_of_another_model_is_refused(self, filled: Store) -> None:
        assert filled.search_vector("things", vector(1), 1, SearchOptions(model=MODEL))
        with pytest.raises(ModelMismatch):
            filled.search_vector("things", vector(1), 1, SearchOptions(model="another@8"))
        with pytest.raises(DimensionMismatch):
            filled.search_vector("things", vector(1)[:3], 1)
        with pytest.raises(DimensionMismatch):
            filled.measure("things", ["both"], vector=vector(1)[:3])

    def test_records_that_share_words_come_by_relevance_and_then_by_id(self, filled: Store) -> None:
        found = filled.search_words("things", "卧室的灯 lamp", 10).found
        assert ids(found) == ids(filled.search_text("things", "卧室的灯 lamp"))
        assert ids(found)[:2] == ["both", "twin"]
        assert found[0].bm25 == found[1].bm25 > found[-1].bm25 > 0
        assert filled.search_words("things", "卧室的灯 lamp", 1).found == found[:1]
        narrowed = filled.search_words("things", "卧室的灯 lamp", 10, only(room="客厅")).found
        assert {one.id: one.bm25 for one in narrowed} == {
            one.id: one.bm25 for one in found if one.id in ("twin", "far")
        }

    def test_the_words_of_a_query_have_a_mass(self, filled: Store) -> None:
        def mass(query: str, **narrowed: str) -> float:
            return filled.search_words("things", query, 10, only(**narrowed)).mass

        rarest = filled.search_words("things", "lamp", 10).rarest
        assert mass("temperature") == pytest.approx(rarest)
        assert mass("lamp") < rarest < mass("nowhere")
        assert mass("lamp temperature nowhere") == pytest.approx(mass("lamp") + mass("temperature") + mass("nowhere"))
        assert mass("lamp temperature", room="nowhere") == pytest.approx(mass("lamp temperature"))
        assert mass("，。") == 0
        assert filled.search_words("things", "lamp temperature", 10).rarest == pytest.approx(rarest)
        assert filled.search_words("nothing", "lamp", 10) == Words()

    def test_measuring_agrees_with_both_legs(self, filled: Store) -> None:
        near = {one.id: one.cosine for one in filled.search_vector("things", vector(1, 2), MAX_LIMIT)}
        worded = {one.id: one.bm25 for one in filled.search_words("things", "卧室 温度 lamp", MAX_LIMIT).found}
        asked = ["words", "far", "gone", "bare", "both", "near", "twin"]
        found = filled.measure("things", asked, vector=vector(1, 2), query="卧室 温度 lamp")
        assert ids(found) == ["words", "far", "bare", "both", "near", "twin"]
        assert {one.id: one.cosine for one in found if one.cosine is not None} == pytest.approx(near)
        assert {one.id: one.bm25 for one in found if one.bm25} == pytest.approx(worded)
        for one in found:
            assert [one] == filled.measure("things", [one.id], vector=vector(1, 2), query="卧室 温度 lamp")

    def test_measuring_needs_neither_a_vector_nor_a_query(self, filled: Store) -> None:
        [words] = filled.measure("things", ["both"], query="lamp")
        assert words.cosine is None
        assert words.bm25 > 0
        [near] = filled.measure("things", ["both"], vector=vector(1))
        assert near.cosine == pytest.approx(1.0)
        assert near.bm25 == 0.0
        assert filled.measure("things", []) == []
        assert filled.measure("nothing", ["both"], vector=vector(1), query="lamp") == []

    def test_texts_are_read_by_id(self, filled: Store) -> None:
        filled.write([record("strange", text="a\0b \ud800 '\"")])
        assert filled.texts("things", ["strange", "near", "gone"]) == {"strange": "a\0b \ud800 '\"", "near": "关闭窗户"}
        assert filled.texts("things", []) == {}
        assert filled.texts("nothing", ["near"]) == {}
