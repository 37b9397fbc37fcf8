"""Users are kept apart whatever is written and whatever is asked, and nobody's own rows get lost on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from homing.errors import InvalidArgument
from homing.langchain import HybridRetriever, table_source
from homing.langchain.retriever import checked_user
from homing.stores.sqlite.store import SqliteStore
from homing.stores.store import Near, SearchOptions
from homing.vectors import Vector
from tests.conftest import Database
from tests.effort import times
from tests.langchain.places import Place, SharedPlace, StorePlace, TablePlace, Text, shared_place

USERS: list[int | str] = [*range(1, 41), "李雷", "1' OR '1'='1", "１", "true", "[1]", "%", "1 ", "user:1"]
WORDS = ["灯", "卧室", "退款", "备份", "light", "commit", "refund", "API"]
FORGED: list[Any] = [[1, 2, 3], {"$eq": 1}, True, 1.5, None, "1", "2", " 1", "1\u200b", {"userId": 1}, ["1"]]
WIDENING: list[dict[str, Any]] = [
    {"userId": 2}, {"userId": {"$ne": 1}}, {"userId": {"$in": [1, 2]}}, {"userId": {"$exists": True}},
    {"$or": [{"userId": 2}, {"n": {"$exists": False}}]}, {"$not": {"userId": 1}}, {"$and": [{"userId": 2}]},
    {"userId": "1 OR 1=1"}, {"1=1) OR (1": 1}, {"userId' = '2' OR '1": "1"}, {"\\": "'"}, {":owner": ":owner"},
]  # fmt: skip
SEARCHES_AT_ONCE = 50
# In full, 130 + 50 + 16 + 4 examples of 50 searches below: ten thousand, and not one wrong row.


def texts_of(user: int | str) -> list[Text]:
    """A few rows for everybody, with metadata that claims to be somebody else's; one user has many."""
    number = USERS.index(user)
    return [
        Text(
            f"{WORDS[n % 8]} {WORDS[(n + number) % 8]} of<{user}> {n}",
            f"{n}.md",
            {"n": n, "user_id": 1, "UserId": 1, "owner": {"userId": 2}, "tag": WORDS[n % 3]},
        )
        for n in range(60 if user == 3 else 2 + number % 5)
    ]


class Crowd:
    """A place full of users, and what each of them must see."""

    def __init__(self, place: Place) -> None:
        self.own: dict[int | str, dict[str, dict[str, Any]]] = {}
        for user in USERS:
            texts = texts_of(user)
            ids = place.add(user, texts)
            self.own[user] = {name: one.all_metadata for name, one in zip(ids, texts, strict=True)}
        self.retrievers = {user: place.retriever(user, limit=100, min_similarity=-1.0) for user in USERS}


@pytest.fixture(scope="module")
def stored(database: Database) -> Iterator[Crowd]:
    place = StorePlace(database)
    yield Crowd(place)
    place.close()


@pytest.fixture(scope="module")
def fenced(database: Database) -> Iterator[Crowd]:
    place = StorePlace(database, row_security=True)
    yield Crowd(place)
    place.close()


@pytest.fixture(scope="module")
def tabled(database: Database) -> Iterator[Crowd]:
    place = TablePlace(database)
    crowd = Crowd(place)
    place.insert([(f"{' '.join(WORDS)} forged", {"userId": claimed, "n": 0}) for claimed in FORGED])
    place.insert([(f"{' '.join(WORDS)} nobody's", {"n": 0, "userid": 1, "UserId": 1}), ("灯 list", [1])])
    with psycopg.connect(database.url, autocommit=True) as connection:
        table = sql.Identifier(place.name)
        connection.execute(sql.SQL("CREATE INDEX ON {} USING hnsw (embedding vector_cosine_ops)").format(table))
        connection.execute(sql.SQL("ANALYZE {}").format(table))
    yield crowd
    place.close()


@pytest.fixture(params=["sqlite", "lance"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedPlace]:
    place = shared_place(request.param, tmp_path)
    yield place
    place.close()


@pytest.fixture(scope="module", params=["sqlite", "lance"])
def crowded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    place = shared_place(request.param, tmp_path_factory.mktemp("crowd"))
    crowd = Crowd(place)
    place.insert([(f"{' '.join(WORDS)} forged", {"userId": claimed, "n": 0}) for claimed in FORGED if claimed != "1"])
    place.insert([(f"{' '.join(WORDS)} nobody's", {"n": 0, "userid": 1, "UserId": 1})])
    yield crowd
    place.close()


users = st.sampled_from(USERS)
queries = st.lists(st.sampled_from([*WORDS, "的", "' OR 1=1 --", "%", "of<1>"]), min_size=1, max_size=3).map(" ".join)
values = st.one_of(
    st.integers(-1, 8),
    st.sampled_from([*USERS, *WORDS, "' OR 'a'='a", '"}', "1) OR (1=1", "%", "\\", ":owner", "$1", "{}"]),
    st.booleans(),
)
keys = st.sampled_from(["userId", "user_id", "UserId", "n", "tag", "fileName", "' OR 1=1 --", '"', "a:owner", "$x"[1:]])
equalities = st.dictionaries(keys, values | values.map(lambda one: {"$eq": one}), max_size=2)
operations = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne"]), values),
    st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(values, max_size=3)),
    st.tuples(st.just("$exists"), st.booleans()),
).map(lambda pair: {pair[0]: pair[1]})
conditions = st.recursive(
    st.dictionaries(keys, values | operations, min_size=1, max_size=2),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"$or": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"$and": parts}),
        inner.map(lambda one: {"$not": one}),
    ),
    max_leaves=4,
)


def same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and isinstance(a, str) == isinstance(b, str) and a == b


def holds(condition: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """What a filter means, said a second time."""
    return all(_holds(key, value, metadata) for key, value in condition.items())


def _holds(key: str, value: Any, metadata: Mapping[str, Any]) -> bool:
    match key:
        case "$or":
            return any(holds(one, metadata) for one in value)
        case "$and":
            return all(holds(one, metadata) for one in value)
        case "$not":
            return not holds(value, metadata)
    there = metadata.get(key)
    for operator, wanted in (value if isinstance(value, dict) else {"$eq": value}).items():
        among = wanted if isinstance(wanted, list) else [wanted]
        equal = there is not None and any(same(there, one) for one in among)
        right = {
            "$eq": equal,
            "$in": equal,
            "$ne": there is not None and not equal,
            "$nin": there is not None and not equal,
            "$exists": (there is not None) == wanted,
        }[operator]
        if not right:
            return False
    return True


def check(crowd: Crowd, user: int | str, query: str, condition: dict[str, Any], *, stamped: bool) -> None:
    """Exactly the user's own rows that the filter lets through: not one foreign, not one missing."""
    found = Counter(hit.id for hit in crowd.retrievers[user].retrieve(query, filter=condition))
    mine = {
        name for name, metadata in crowd.own[user].items()
        if holds(condition, metadata | ({"userId": user} if stamped else {}))
    }  # fmt: skip
    assert set(found) == mine, f"user {user!r} asked {query!r} with {condition!r}"
    assert set(found.values()) <= {1}


def search_all(crowd: Crowd, batch: list[tuple[int | str, str, dict[str, Any]]], *, stamped: bool) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda one: check(crowd, *one, stamped=stamped), batch))


def thoroughly(few: int, in_full: int) -> settings:
    examples = times(few, in_full=in_full)
    return settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@thoroughly(8, 130)
@given(batch=st.lists(st.tuples(users, queries, equalities), min_size=SEARCHES_AT_ONCE, max_size=SEARCHES_AT_ONCE))
def test_searches_of_a_store(stored: Crowd, batch: list[Any]) -> None:
    search_all(stored, batch, stamped=False)


@pytest.mark.slow
@thoroughly(5, 50)
@given(batch=st.lists(st.tuples(users, queries, equalities), min_size=SEARCHES_AT_ONCE, max_size=SEARCHES_AT_ONCE))
def test_searches_of_a_store_behind_the_fence(fenced: Crowd, batch: list[Any]) -> None:
    search_all(fenced, batch, stamped=False)


@pytest.mark.slow
@thoroughly(2, 8)
@given(batch=st.lists(st.tuples(users, queries, conditions), min_size=SEARCHES_AT_ONCE, max_size=SEARCHES_AT_ONCE))
def test_searches_of_a_store_that_users_share(crowded: Crowd, batch: list[Any]) -> None:
    search_all(crowded, batch, stamped=True)


@pytest.mark.slow
@thoroughly(4, 16)
@given(batch=st.lists(st.tuples(users, queries, conditions), min_size=SEARCHES_AT_ONCE, max_size=SEARCHES_AT_ONCE))
def test_searches_of_a_table(tabled: Crowd, batch: list[Any]) -> None:
    search_all(tabled, batch, stamped=True)


@pytest.mark.slow
@thoroughly(2, 4)
@given(batch=st.lists(st.tuples(users, queries), min_size=SEARCHES_AT_ONCE, max_size=SEARCHES_AT_ONCE))
def test_searches_by_an_index_that_all_users_share(tabled: Crowd, batch: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Nobody has few rows: everybody is looked for in the index, which then has to pass by everybody else.
        patch.setattr(table_source, "FEW", 1)

        def look(asked: tuple[int | str, str]) -> None:
            user, query = asked
            found = [hit.id for hit in tabled.retrievers[user].retrieve(query, limit=10, leg_limit=10)]
            assert set(found) <= set(tabled.own[user])
            assert len(found) == min(10, len(tabled.own[user])), f"user {user!r} asked {query!r}"

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(look, batch))


def test_a_retriever_without_a_user_cannot_be_made(place: Place) -> None:
    nobody: list[Any] = [None, "", "  ", True, 1.0, b"1", [1], {"$ne": 0}, "a\0b", "\ud800", "长" * 100]
    for user in nobody:
        with pytest.raises(InvalidArgument, match="user"):
            place.retriever(user)


def test_the_user_of_a_retriever_cannot_be_changed_or_overridden(place: Place) -> None:
    place.add(1, [Text("苹果 一")])
    place.add(2, [Text("苹果 二")])
    retriever = place.retriever(1)
    with pytest.raises(ValueError, match="frozen"):
        retriever.user_id = 2  # type: ignore[misc]
    with pytest.raises(InvalidArgument, match="user_id"):
        retriever.invoke("苹果", user_id=2)
    with pytest.raises(InvalidArgument, match="userId"):
        HybridRetriever(retriever.vector_store, 1, {"userId": 2}, embeddings=place.embedder)
    copied = retriever.model_copy(update={"user_id": 2})
    assert [one.page_content for one in copied.invoke("苹果")] == ["苹果 一"]


def test_no_filter_widens(table: TablePlace) -> None:
    table.add(1, [Text("苹果 一")])
    table.add(2, [Text("苹果 二")])
    for condition in WIDENING:
        found = {one.page_content for one in table.retriever(1).invoke("苹果", filter=condition)}
        assert found <= {"苹果 一"}, condition


def test_a_filter_that_means_nothing_is_refused_before_anything_is_asked(table: TablePlace) -> None:
    nonsense: list[dict[Any, Any]] = [
        {"$where": "1=1"}, {"$or": []}, {"$or": {"a": 1}}, {"$not": 1}, {"a": {}}, {"a": {"$sql": 1}}, {1: 2},
        {"a": {"$in": "abc"}}, {"a": [1]}, {"a": {"$gt": float("nan")}}, {"a": "\0"}, {"\ud800": 1}, {"$or": ["a"]},
        {"a": {"$eq": {"b": 1}}}, {"a": {"$like": 1}}, {"a": {"$exists": "yes"}}, {"a": {"$between": [1]}},
        {"a": {"$in": list(range(300))}}, {"$or": [{"a": 1}] * 1_000},
    ]  # fmt: skip
    for condition in nonsense:
        with pytest.raises(InvalidArgument):
            table.retriever(1).invoke("苹果", filter=condition)
    assert table.embedder.calls == 0


def nested(depth: int) -> dict[str, Any]:
    """A filter so many levels deep."""
    condition: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        condition = {"$not": condition}
    return condition


def test_a_store_answers_filters_that_are_more_than_equality(store: StorePlace) -> None:
    store.add(1, [Text("苹果", metadata={"n": n}) for n in range(4)])
    conditions: list[tuple[dict[str, Any], set[int]]] = [
        ({"n": {"$gt": 1}}, {2, 3}), ({"$or": [{"n": 1}]}, {1}), ({"n": {"$eq": 1, "$in": [1]}}, {1})
    ]  # fmt: skip
    for condition, found in conditions:
        assert {one.metadata["n"] for one in store.retriever(1).invoke("苹果", filter=condition)} == found


def test_a_store_refuses_a_filter_that_means_nothing_before_anything_is_asked(shared: SharedPlace) -> None:
    nonsense: list[dict[Any, Any]] = [
        {"$where": "1=1"}, {"$or": []}, {"$or": {"a": 1}}, {"$not": 1}, {"a": {}}, {"a": {"$sql": 1}}, {1: 2},
        {"a": {"$in": "abc"}}, {"a": {"$gt": float("nan")}}, {"$or": ["a"]}, {"$and": [1]}, {"a": {"b": 1}},
        {"a": {"$gt": 1, "b": 2}}, {"a": {"$like": "x%"}}, {"a": {"$exists": "yes"}}, {"a": {"$between": [1]}},
        {"a": {"$gt": None}}, {"a": {"$eq": float("inf")}}, {"a": {1: 2}}, nested(5_000),
    ]  # fmt: skip
    for condition in nonsense:
        with pytest.raises(InvalidArgument):
            shared.retriever(1, filter=condition).invoke("苹果")
    assert shared.embedder.calls == 0


def test_no_filter_widens_what_a_shared_store_shows(shared: SharedPlace) -> None:
    shared.add(1, [Text("苹果 一")])
    shared.add(2, [Text("苹果 二")])
    for condition in WIDENING:
        found = {one.page_content for one in shared.retriever(1).invoke("苹果", filter=condition)}
        assert found <= {"苹果 一"}, condition


def test_a_shared_store_tells_users_apart_by_type_and_key(shared: SharedPlace) -> None:
    shared.insert([(f"苹果 {claimed!r}", {"userId": claimed}) for claimed in [1, *FORGED]])
    shared.insert([("苹果 团队", {"team": "红", "userId": 2}), ("苹果 无主", {})])
    one = {"min_similarity": -1.0, "limit": 50}
    assert [found.page_content for found in shared.retriever(1, one).invoke("苹果")] == ["苹果 1"]
    assert [found.page_content for found in shared.retriever("1", one).invoke("苹果")] == ["苹果 '1'"]
    assert [found.page_content for found in shared.retriever("红", one, user_key="team").invoke("苹果")] == [
        "苹果 团队"
    ]
    for key in ("", "$or"):
        with pytest.raises(InvalidArgument, match="user_key"):
            shared.retriever(1, user_key=key)


class GivenAway(SqliteStore):
    """A store whose records become another user's as soon as the vector leg has found them."""

    def search_vector(
        self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
    ) -> list[Near]:
        found = super().search_vector(collection, vector, limit, options)
        records = self.get(collection, [one.id for one in found])
        self.upsert(replace(one, metadata={"userId": 2}, text="别人的秘密") for one in records)
        return found


def test_a_record_that_is_given_away_during_a_search_is_not_shown(tmp_path: Path) -> None:
    place = SharedPlace(GivenAway(tmp_path / "store.db"))
    place.add(1, [Text("苹果")])
    assert place.retriever(1, min_similarity=-1.0).invoke("的") == []
    assert [one.page_content for one in place.retriever(2, min_similarity=-1.0).invoke("秘密")] == ["别人的秘密"]
    place.close()


def test_metadata_of_others_that_postgres_cannot_read_stands_in_nobodys_way(table: TablePlace) -> None:
    table.add(1, [Text("苹果 一", metadata={"n": 1}), Text("苹果 表情", metadata={"n": 2, "face": "😀"})])
    table.add("😀", [Text("苹果 笑")])
    table.insert([("苹果 坏", {"userId": 2, "name": "a\0b"}), ("苹果 半", {"userId": "\ud83d", "x": "\udc00"})])
    assert {one.page_content for one in table.retriever(1).invoke("苹果")} == {"苹果 一", "苹果 表情"}
    assert {one.page_content for one in table.retriever(1).invoke("苹果", filter={"n": {"$gte": 2}})} == {"苹果 表情"}
    assert [one.page_content for one in table.retriever("😀").invoke("苹果")] == ["苹果 笑"]


def test_a_document_cannot_pass_itself_off_as_another_users(place: Place) -> None:
    place.add(1, [Text("苹果", "真.md", {"id": "x", "score": 99, "similarity": 1.0, "degraded": "no", "userID": 2})])
    (found,) = place.retriever(1).invoke("苹果")
    assert found.metadata["userId"] == 1
    assert found.metadata["id"] == found.id != "x"
    assert found.metadata["score"] < 1
    assert found.metadata["degraded"] is None


def test_whoever_is_no_user_is_refused_by_name() -> None:
    assert checked_user(0) == 0
    assert checked_user("李雷") == "李雷"
    with pytest.raises(InvalidArgument, match="whole number"):
        checked_user(None)
