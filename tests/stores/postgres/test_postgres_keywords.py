"""The keyword leg of PostgreSQL: BM25 over our own words, like SQLite's."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from homing.records import VectorRecord
from homing.stores import open_store
from homing.stores.postgres.store import PostgresStore
from homing.stores.store import SearchOptions
from homing.text.tokens import query_terms, tokens

TEXTS = {
    "light": "打开卧室的灯，卧室的灯可以调节亮度",
    "lamp": "The bedroom lamp is on the table in the bedroom.",
    "both": "卧室 bedroom: 打开 the lamp 灯",
    "git": "Git 提交代码前先检查改动，提交信息要写清楚",
    "commit": "Commit early, commit often; a commit message says why.",
    "trad": "臥室的燈具與開關設備",
    "number": "房间号１２３４在三楼",
    "emoji": "launch 🚀 the model GPT-4o today",
    "long": "一段很长的话，说的是天气、出行、吃饭和睡觉，最后才提到卧室。" * 5,
}
QUERIES = [
    "卧室", "灯", "打开卧室的灯", "bedroom lamp", "提交", "commit message", "臥室", "1234", "gpt-4o", "🚀",
    "卧室 bedroom 灯 lamp", "开关设备",
]  # fmt: skip


@pytest.fixture
def filled(store: PostgresStore) -> PostgresStore:
    store.upsert(VectorRecord(name, "c", None, {"length": len(text)}, text) for name, text in TEXTS.items())
    return store


@pytest.mark.parametrize("query", QUERIES)
def test_the_relevance_is_bm25(filled: PostgresStore, query: str) -> None:
    counts = {name: Counter(tokens(text)) for name, text in TEXTS.items()}
    average = sum(sum(found.values()) for found in counts.values()) / len(counts)
    expected: dict[str, float] = {}
    for term in query_terms(query):
        having = [name for name, found in counts.items() if term in found]
        weight = math.log(1 + (len(counts) - len(having) + 0.5) / (len(having) + 0.5))
        for name in having:
            often, length = counts[name][term], sum(counts[name].values())
            share = weight * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length / average))
            expected[name] = expected.get(name, 0.0) + share
    found = filled.search_text("c", query, limit=100)
    assert {match.id: match.score for match in found} == pytest.approx(expected, abs=1e-6)
    assert [match.id for match in found] == sorted(expected, key=lambda name: (-round(expected[name], 7), name))


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_records_are_found_as_in_sqlite_with_the_same_first(
    filled: PostgresStore, tmp_path: Path, query: str
) -> None:
    other = open_store(tmp_path / "other.db")
    other.upsert(VectorRecord(name, "c", None, {}, text) for name, text in TEXTS.items())
    here = [match.id for match in filled.search_text("c", query, limit=100)]
    there = [match.id for match in other.search_text("c", query, limit=100)]
    other.close()
    assert here[0] == there[0]
    assert set(here) == set(there)


def test_a_filter_does_not_change_the_relevance(filled: PostgresStore) -> None:
    every = {match.id: match.score for match in filled.search_text("c", "卧室 lamp", limit=100)}
    only = filled.search_text("c", "卧室 lamp", options=SearchOptions({"length": len(TEXTS["long"])}))
    assert [match.id for match in only] == ["long"]
    assert only[0].score == pytest.approx(every["long"])


def test_the_words_of_other_collections_do_not_count(filled: PostgresStore) -> None:
    before = [match.score for match in filled.search_text("c", "卧室 commit")]
    filled.upsert(VectorRecord(str(number), "other", None, {}, "卧室 " * 9) for number in range(50))
    assert [match.score for match in filled.search_text("c", "卧室 commit")] == before
