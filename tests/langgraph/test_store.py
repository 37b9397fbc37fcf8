"""HomingStore as LangGraph's store: like LangGraph's own in what it answers, and durable."""

from __future__ import annotations

import asyncio
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import homing
from homing.errors import InvalidArgument, ProviderUnavailable
from homing.langgraph import HomingStore
from homing.testing.fake import FakeEmbedder
from tests.forked import run_python

Open = Callable[..., HomingStore]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    opened: list[HomingStore] = []
    place = str(tmp_path / "data")
    if request.param == "postgres":
        place = f"{request.getfixturevalue('database').url}?schema=g_{secrets.token_hex(5)}"

    def open_it(**more: Any) -> HomingStore:
        opened.append(HomingStore(place, more.pop("embedding", FakeEmbedder(64)), **more))
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()


VALUES: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {
    (("users", "ann"), "food"): {"text": "不吃辣，对花生过敏", "score": 5, "tags": ["food", "health"], "ok": True},
    (("users", "ann"), "pet"): {"text": "My cat is called Mimi", "score": 3.5, "by": {"name": "ann", "age": 9}},
    (("users", "ann", "old"), "pet"): {"text": "A dog", "score": 1, "by": None, "a.b": 1},
    (("users", "安"), "food"): {"text": "喜欢面条 noodles", "score": 9, "tags": [], "nothing": {}},
    (("shop",), "food"): {"text": "", "score": 0},
}


def filled(store: Any) -> Any:
    for (namespace, key), value in VALUES.items():
        store.put(namespace, key, value)
    return store


FILTERS: list[dict[str, Any]] = [
    {"score": 5},
    {"score": {"$gte": 3.5}},
    {"score": {"$gt": 0, "$lt": 9}},
    {"score": {"$ne": 5}, "text": {"$ne": "A dog"}},
    {"tags": ["food", "health"]},
    {"tags": "food"},
    {"tags": []},
    {"by": {"name": "ann"}},
    {"by": {"name": "ann", "age": {"$gt": 8}}},
    {"by": None},
    {"nothing": None},
    {"ok": {"$eq": True}},
    {"a.b": 1},
    {"text": "My cat is called Mimi"},
    {"no": "such"},
]


def test_filters_namespaces_and_items_are_those_of_langgraphs_own_store(open_store: Open) -> None:
    ours, theirs = filled(open_store()), filled(InMemoryStore())
    for prefix in [(), ("users",), ("users", "ann"), ("users", "an"), ("nobody",)]:
        for wanted in [None, *FILTERS]:
            found = {(one.namespace, one.key): one.value for one in ours.search(prefix, filter=wanted)}
            expected = {(one.namespace, one.key): one.value for one in theirs.search(prefix, filter=wanted)}
            assert found == expected, (prefix, wanted)
    searches: list[dict[str, Any]] = [
        {},
        {"prefix": ("users",)},
        {"suffix": ("old",)},
        {"prefix": ("users", "*", "old")},
        {"suffix": ("users", "*")},
        {"max_depth": 1},
        {"max_depth": 2, "limit": 1, "offset": 1},
    ]
    for given in searches:
        assert ours.list_namespaces(**given) == theirs.list_namespaces(**given), given
    for namespace, key in [*VALUES, (("users",), "food"), (("users", "ann"), "none")]:
        mine, other = ours.get(namespace, key), theirs.get(namespace, key)
        assert (mine and (mine.value, mine.key, mine.namespace)) == (other and (other.value, key, namespace))
    ours.delete(("users", "ann"), "food")
    ours.delete(("users", "ann"), "never there")
    assert ours.get(("users", "ann"), "food") is None
    assert ours.list_namespaces(prefix=("users", "安")) == [("users", "安")]


def test_a_query_finds_by_words_at_once_in_both_languages(open_store: Open) -> None:
    store = filled(open_store(embedding=FakeEmbedder(64, fail_with=ProviderUnavailable("down"))))
    for query, expected in [("花生", ("ann", "food")), ("Mimi", ("ann", "pet")), ("面条 noodles", ("安", "food"))]:
        first = store.search(("users",), query=query)[0]
        assert (first.namespace[-1], first.key) == expected
        assert 0 < first.score <= 1
    assert store.search(("users", "安"), query="花生") == []
    assert [one.key for one in store.search((), query="cat dog", filter={"score": {"$lt": 3}})] == ["pet"]


def test_a_query_ranks_by_meaning_pages_and_follows_changes(open_store: Open) -> None:
    store = filled(open_store())
    every = [(one.namespace, one.key) for one in store.search(("users",), query="不吃辣，对花生过敏", limit=9)]
    assert every[0] == (("users", "ann"), "food")
    assert len(every) == 4
    paged = [store.search(("users",), query="不吃辣，对花生过敏", limit=1, offset=at) for at in range(5)]
    assert [(one.namespace, one.key) for page in paged for one in page] == every
    before = store.get(("users", "ann"), "food")
    store.put(("users", "ann"), "food", {"text": "什么都吃 eats anything"})
    after = store.get(("users", "ann"), "food")
    assert (after.created_at, after.value) == (before.created_at, {"text": "什么都吃 eats anything"})
    assert after.updated_at >= before.updated_at
    assert store.search((), query="anything")[0].key == "food"


def test_fields_and_index_say_what_is_searched(open_store: Open) -> None:
    store = open_store(fields=["title", "parts[*].text"])
    store.put(("n",), "1", {"title": "灯塔", "parts": [{"text": "lighthouse"}, {"text": "海"}], "secret": "hidden"})
    store.put(("n",), "2", {"title": "visible", "other": "别的"}, index=["other"])
    store.put(("n",), "3", {"title": "灯塔 unsearched"}, index=False)

    def keys(query: str) -> list[str]:
        scored = [one for one in store.search(("n",), query=query) if (one.score or 0) > 0.5]
        return [one.key for one in scored]

    assert keys("灯塔 lighthouse 海") == ["1"]
    assert keys("hidden") == []
    assert keys("别的") == ["2"]
    assert store.get(("n",), "3") is not None


class Clock:
    """A clock that stands until it is moved."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_items_expire_unless_they_are_read(open_store: Open) -> None:
    clock = Clock()
    store = open_store(clock=clock, ttl={"default_ttl": 10, "refresh_on_read": True})
    store.put(("n",), "kept", {"text": "灯塔"}, ttl=None)
    store.put(("n",), "read", {"text": "灯塔 read"})
    store.put(("n",), "seen", {"text": "灯塔 seen"})
    store.put(("n",), "left", {"text": "灯塔 left"})
    store.put(("m",), "left", {"text": "猫"}, ttl=10)
    clock.now += 6 * 60
    assert store.get(("n",), "read") is not None
    assert [one.key for one in store.search(("n",), filter={"text": "灯塔 seen"})] == ["seen"]
    assert store.get(("n",), "left", refresh_ttl=False) is not None
    clock.now += 6 * 60
    assert store.get(("n",), "left") is None
    assert {one.key for one in store.search(("n",))} == {"kept", "read", "seen"}
    assert {one.key for one in store.search(("n",), query="灯塔")} == {"kept", "read", "seen"}
    assert store.list_namespaces() == [("n",)]
    assert store.sweep_ttl() == 2
    assert store.sweep_ttl() == 0
    clock.now += 60 * 60
    store.put(("n",), "new", {"text": "新的"}, ttl=1)
    assert {one.key for one in store.search(("n",))} == {"kept", "new"}
    store.put(("n",), "new", {"text": "新的"}, ttl=None)
    clock.now += 60 * 60
    assert store.get(("n",), "new") is not None


async def test_a_batch_reads_what_was_there_and_keeps_all_or_nothing(open_store: Open) -> None:
    store = open_store()
    await store.aput(("n",), "1", {"text": "一"})
    got, _, found, names, _ = await store.abatch(
        [
            GetOp(("n",), "1"),
            PutOp(("n",), "1", {"text": "二"}),
            SearchOp(("n",)),
            ListNamespacesOp((MatchCondition("prefix", ("n",)),)),
            PutOp(("n",), "1", {"text": "三"}),
        ]
    )
    assert got.value == found[0].value == {"text": "一"}  # type: ignore[union-attr, index]
    assert names == [("n",)]
    assert (await store.aget(("n",), "1")).value == {"text": "三"}  # type: ignore[union-attr]
    with pytest.raises(InvalidArgument, match="JSON cannot hold"):
        await store.abatch([PutOp(("n",), "2", {"text": "四"}), PutOp(("n",), "3", {"text": object()})])
    assert await store.aget(("n",), "2") is None
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "1", {})])
    with pytest.raises(InvalidArgument, match=r"\$near"):
        store.search(("n",), filter={"score": {"$near": 1}})
    await store.adelete(("n",), "1")
    assert await store.alist_namespaces() == []


def test_several_threads_and_processes_lose_nothing(open_store: Open) -> None:
    clock = Clock()
    one, other = open_store(clock=clock), open_store(clock=clock)

    def work(number: int) -> None:
        store = (one, other)[number % 2]
        store.put(("n",), str(number), {"text": f"记忆 {number}"}, ttl=5)
        store.get(("n",), str(number))
        store.put(("n",), "shared", {"number": number}, ttl=5)
        store.get(("n",), "shared")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert {item.key for item in one.search(("n",), limit=50)} == {*map(str, range(12)), "shared"}
    assert all(one.get(("n",), str(at)).value == {"text": f"记忆 {at}"} for at in range(12))  # type: ignore[union-attr]


def test_what_it_cannot_stand_on_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="need a store that is a database"):
        HomingStore(f"lance://{tmp_path / 'lance'}", FakeEmbedder(64))
    with pytest.raises(InvalidArgument, match="no dot"):
        HomingStore(tmp_path, collection="a.b")
    with homing.open(tmp_path / "data", embedder=FakeEmbedder(64)) as app:
        HomingStore(app).put(("n",), "1", {"text": "灯塔"})
        assert app.search("灯塔", "langgraph")[0].metadata["value"] == {"text": "灯塔"}


@pytest.mark.slow
def test_an_agent_that_was_killed_remembers(tmp_path: Path) -> None:
    def run(what: str) -> subprocess.CompletedProcess[str]:
        return run_python([str(Path(__file__).parent / "agent.py"), what, str(tmp_path / "data")])

    killed = run("remember")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.splitlines()[0] == "I know: nothing"
    again = run("recall")
    assert again.stdout.splitlines() == [
        "I know: 我对花生过敏，不吃辣。",
        "I know: My cat is called Mimi.",
        "I know: 我住在杭州 near the lake.",
    ], again.stderr


def test_a_graph_of_today_uses_it_asynchronously(tmp_path: Path) -> None:
    from langchain_core.messages import HumanMessage

    from tests.langgraph.agent import graph

    store = HomingStore(tmp_path / "data", FakeEmbedder(64))
    agent = graph(store)
    asyncio.run(agent.ainvoke({"messages": [HumanMessage("我喜欢灯塔")]}))
    answer = asyncio.run(agent.ainvoke({"messages": [HumanMessage("灯塔？")]}))
    assert answer["messages"][-1].content == "I know: 我喜欢灯塔"
    store.close()
