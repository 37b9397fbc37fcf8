"""Records by how many keywords they contain, and stores in other processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from homing.errors import InvalidArgument
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from homing.stores.store import SearchOptions

TEXTS = {
    "refund": "退款政策：七天内可以申请退款 Refund",
    "shipping": "物流政策：两天发货",
    "backup": "數據庫備份 每天 ＡＰＩ",
    "percent": "100% file_read \\ 🚀",
}


@pytest.fixture
def filled(store: PostgresStore) -> PostgresStore:
    store.upsert(VectorRecord(key, "c", None, {"key": key}, text) for key, text in TEXTS.items())
    return store


def found(store: PostgresStore, *keywords: str, **asked: str) -> list[tuple[str, float | None]]:
    options = SearchOptions(asked) if asked else None
    return [(match.id, match.score) for match in store.search_keywords("c", keywords, options=options)]


def test_those_with_most_keywords_come_first(filled: PostgresStore) -> None:
    assert found(filled, "退款", "政策", "refund") == [("refund", 3.0), ("shipping", 1.0)]
    assert found(filled, "政策") == [("refund", 1.0), ("shipping", 1.0)]


def test_a_match_says_which_keywords_it_contains(filled: PostgresStore) -> None:
    (match, *_) = filled.search_keywords("c", ["退款", "发货", "", "REFUND"])
    assert match.keywords == ("退款", "REFUND")


def test_the_rarer_keyword_decides_between_equal_counts(filled: PostgresStore) -> None:
    assert found(filled, "政策", "发货")[0] == ("shipping", 2.0)
    assert found(filled, "政策", "备份")[0] == ("backup", 1.0)


@pytest.mark.parametrize("keyword", ["数据库", "數據庫", "备份", "api", "ＡＰＩ"])
def test_a_keyword_is_found_however_it_is_written(filled: PostgresStore, keyword: str) -> None:
    assert found(filled, keyword) == [("backup", 1.0)]


@pytest.mark.parametrize("keyword", ["%", "_", "\\", "' OR 1=1", "x%y", "\0", "\ud800", ""])
def test_a_keyword_is_data(filled: PostgresStore, keyword: str) -> None:
    assert found(filled, keyword) == []


@pytest.mark.parametrize("keyword", ["100", "file_read", "🚀"])
def test_numbers_identifiers_and_emoji_are_keywords(filled: PostgresStore, keyword: str) -> None:
    assert found(filled, keyword) == [("percent", 1.0)]


def test_filters_limits_and_unknown_collections(filled: PostgresStore) -> None:
    assert found(filled, "政策", key="shipping") == [("shipping", 1.0)]
    assert found(filled, "政策", key="nothing") == []
    assert len(filled.search_keywords("c", ["政策"], 1)) == 1
    assert filled.search_keywords("c", ["政策"], 0) == []
    assert filled.search_keywords("unknown", ["政策"]) == []
    assert filled.search_keywords("c", []) == []
    with pytest.raises(InvalidArgument):
        filled.search_keywords("c", [1])  # type: ignore[list-item]


@pytest.mark.parametrize("fenced", [False, True])
def test_users_do_not_see_each_other(opened: Callable[..., PostgresStore], fenced: bool) -> None:
    store = opened(row_security=fenced)
    for user in (1, 2):
        store.for_user(user).upsert([VectorRecord("same", "c", None, {}, f"退款 of {user}")])
    assert [match.text for match in store.for_user(2).search_keywords("c", ["退款"])] == ["退款 of 2"]
    assert store.search_keywords("c", ["退款"]) == []


def test_a_store_that_was_sent_elsewhere_has_connections_of_its_own(store: PostgresStore) -> None:
    mine = store.for_user("李雷")
    mine.upsert([VectorRecord("a", "c", np.ones(2, np.float32), {}, "秘密", "m@2")])
    for one in (store, mine):
        sent = pickle.loads(pickle.dumps(one))
        assert (sent.user_id, sent.schema) == (one.user_id, store.schema)
        view = sent if sent.user_id else sent.for_user("李雷")
        assert [match.text for match in view.search_keywords("c", ["秘密"])] == ["秘密"]
        sent.close()
    assert [match.text for match in mine.search_keywords("c", ["秘密"])] == ["秘密"]
