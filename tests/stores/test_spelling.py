"""A Latin word that no text holds is read as its nearest spelling, in every store that keeps our keyword index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.engine.search import HybridOptions, search
from homing.operations.hits import search_out
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from homing.stores.postings.spelling import one_edit
from homing.stores.sqlite import SqliteStore
from tests.conftest import Database

Either = SqliteStore | PostgresStore

TEXTS = {
    "keeper": "The keeper of the lighthouse lit the lamp 灯塔的守护者",
    "commit": "Commit the staged files with git 提交代码",
    "deploy": "Deploy the container with docker 部署容器",
    "lamps": "A lamp and another lamp, a damp cellar",
    "damp": "A damp cellar",
    "camp": "灯塔下的 damp 营地",
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Either]:
    if request.param == "sqlite":
        opened: Either = SqliteStore(tmp_path_factory.mktemp("spelling") / "x.db")
    else:
        database: Database = request.getfixturevalue("database")
        opened = PostgresStore(database.url, schema="spelling")
        opened.drop("c")
    opened.write([VectorRecord(name, "c", None, {}, text) for name, text in TEXTS.items()])
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("query", "read", "first"),
    [
        ("comit", {"comit": "commit"}, "commit"),
        ("committ", {"committ": "commit"}, "commit"),
        ("cpmmit", {"cpmmit": "commit"}, "commit"),
        ("ocmmit", {"ocmmit": "commit"}, "commit"),
        ("Kepeer", {"kepeer": "keeper"}, "keeper"),
        ("keepers of the lihgthouse", {"lihgthouse": "lighthouse"}, "keeper"),
        ("怎么用 dokcer 部署", {"dokcer": "docker"}, "deploy"),
        ("ｄｏｃｋｒ 容器", {"dockr": "docker"}, "deploy"),
        ("提交 comitt", {}, "commit"),
        ("git comit 代码 dokcer", {"comit": "commit", "dokcer": "docker"}, "commit"),
    ],
)
def test_a_misspelt_word_is_read_as_the_nearest(store: Either, query: str, read: dict[str, str], first: str) -> None:
    found = store.search_words("c", query, 5)
    assert found.corrected == read
    assert found.found[0].id == first
    [measured] = store.measure("c", [first], query=query)
    assert measured.bm25 == pytest.approx(found.found[0].bm25)


def test_of_several_spellings_the_one_that_most_texts_hold(store: Either) -> None:
    # lamp is in two texts, damp in three.
    found = store.search_words("c", "xamp", 5)
    assert found.corrected == {"xamp": "damp"}
    assert {one.id for one in found.found} == {"lamps", "damp", "camp"}


@pytest.mark.parametrize("query", ["lamp", "lamps", "灯塔", "git", "gti", "rhe", "2o24", "zzzzzzz", "keeper_lamp"])
def test_what_is_known_short_or_far_away_stays_as_it_is(store: Either, query: str) -> None:
    assert store.search_words("c", query, 5).corrected == {}


def test_a_word_of_a_removed_text_is_no_spelling(store: Either) -> None:
    store.write([VectorRecord("gone", "c", None, {}, "marmalade 果酱")])
    assert store.search_words("c", "marmelade", 5).corrected == {"marmelade": "marmalade"}
    store.delete("c", ["gone"])
    found = store.search_words("c", "marmelade", 5)
    assert (found.corrected, found.found) == ({}, ())


def test_an_answer_says_what_was_searched_for(store: Either) -> None:
    found = search("如何 comit 代码", "c", store=store, embedder=None, options=HybridOptions(limit=3))
    assert found.corrected == {"comit": "commit"}
    assert found[0].id == "commit"
    assert set(found[0].keywords) >= {"代码", "commit"}
    shown = search_out("documents", "如何 comit 代码", found)
    assert shown.corrected == {"comit": "commit"}
    assert "Commit" in {shown.hits[0].text[start:end] for start, end in shown.hits[0].spans}
    said = shown.spelling()
    assert said is not None
    assert said.zh == "没有文本含有“comit”，已按“commit”搜索"
    assert said.en == 'no text contains "comit", searched for "commit"'
    assert said.en in shown.summary()


@given(st.text("abcz", min_size=4, max_size=9))
def test_spellings_are_those_at_one_edit(word: str) -> None:
    made = sorted(one_edit(word))
    assert word not in made
    assert len(made) <= 54 * len(word) + 25
    assert {word[1:], word + "q", "q" + word[1:]} <= set(made)
    if word[0] != word[1]:
        assert word[1] + word[0] + word[2:] in made
    assert all(word in one_edit(one) for one in made[:: len(made) // 5])
