"""Words are found in both languages, and a query is never more than words."""

from __future__ import annotations

import pytest

from homing.stores.store import Store
from homing.testing.store_contract.samples import Opened, ids, record


class WordingContract(Opened):
    """Search by words."""

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
