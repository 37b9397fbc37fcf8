"""What a retriever finds, in every place, in Chinese, in English, and in both at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from homing.errors import InvalidArgument
from homing.langchain import HybridRetriever, HybridRetrieverOptions
from tests.langchain.places import Place, SharedPlace, StorePlace, TablePlace, Text, shared_place

TEXTS = [
    Text("退款政策：收到货后七天内可以申请退款，运费由卖家承担。", "退款.md"),
    Text("Refund policy: ask for your money back within seven days.", "refund.md"),
    Text("數據庫每天凌晨備份一次，保留三十天。", "備份.md"),
    Text("调用 ＡＰＩ 时把 token 放进 header，额度为每分钟６０次。", "api.md"),
    Text("折扣是100%真实的，file_read 读取文件 🚀 发射。", "杂项.md"),
    Text("猫在窗台上睡觉。", "猫.md"),
]


KINDS = ("store", "table", "sqlite", "lance")


@contextmanager
def opened(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    made: Place
    if request.param in ("sqlite", "lance"):
        made = shared_place(request.param, folder)
    else:
        database = request.getfixturevalue("database")
        made = StorePlace(database) if request.param == "store" else TablePlace(database)
    yield made
    made.close()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with opened(request, tmp_path) as made:
        yield made


@pytest.fixture(scope="module", params=KINDS)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place with the texts of one user, for tests that only look."""
    with opened(request, tmp_path_factory.mktemp("filled")) as made:
        made.add(1, TEXTS)
        yield made


@pytest.mark.parametrize(
    ("query", "file"),
    [
        ("怎么申请退款", "退款.md"),
        ("退款", "退款.md"),
        ("refund policy", "refund.md"),
        ("REFUND", "refund.md"),
        ("数据库备份", "備份.md"),
        ("備份", "備份.md"),
        ("API header", "api.md"),
        ("ａｐｉ", "api.md"),
        ("60次 额度", "api.md"),
        ("file_read", "杂项.md"),
        ("🚀", "杂项.md"),
        ("token 怎么放进 header", "api.md"),
        ("窗台", "猫.md"),
    ],
)
def test_the_right_text_comes_first(filled: Place, query: str, file: str) -> None:
    assert filled.retriever(1).invoke(query)[0].metadata["fileName"] == file


@pytest.mark.parametrize("query", ["退款", "备份", "數據", "policy", "API", "🚀", "６０次"])
def test_keywords_alone_find_it_too(filled: Place, query: str) -> None:
    (found, *_) = filled.retriever(1, min_similarity=1.0).invoke(query)
    assert found.metadata["keywordRank"] == 1
    assert found.metadata["vectorRank"] is None
    assert found.metadata["matchedKeywords"] != []
    assert found.metadata["keywordScore"] >= 1


@pytest.mark.parametrize(
    "query", ["100%", "file_", "%", "_", "\\", "' OR 1=1 --", ":owner", "%%", "{}", "\0", "\ud800"]
)
def test_signs_of_sql_are_only_signs(filled: Place, query: str) -> None:
    found = {one.metadata["fileName"] for one in filled.retriever(1, min_similarity=1.0).invoke(query)}
    assert found <= {"杂项.md"}


@pytest.mark.parametrize("query", ["", "   ", "\n\t　"])
def test_a_blank_query_finds_nothing_and_asks_nobody(filled: Place, query: str) -> None:
    before = filled.embedder.calls
    assert filled.retriever(1).invoke(query) == []
    assert filled.embedder.calls == before


def test_a_document_tells_how_it_was_found(filled: Place) -> None:
    (found, *_) = filled.retriever(1).invoke("退款政策")
    assert found.id == found.metadata["id"]
    assert found.page_content == TEXTS[0].text
    assert {name: found.metadata[name] for name in ("userId", "fileName", "vectorRank", "keywordRank", "degraded")} == {
        "userId": 1,
        "fileName": "退款.md",
        "vectorRank": 1,
        "keywordRank": 1,
        "degraded": None,
    }
    assert found.metadata["score"] == pytest.approx(0.7 / 61 + 0.3 / 61)
    assert 0.3 < found.metadata["similarity"] <= 1
    assert found.metadata["matchedKeywords"] == ["退款", "退款政策", "政策"]
    assert found.metadata["keywordScore"] == 3


def test_what_only_keywords_found_has_a_similarity_as_well(filled: Place) -> None:
    (found, *_) = filled.retriever(1, min_similarity=0.99).invoke("窗台")
    assert found.metadata["vectorRank"] is None
    assert 0 < found.metadata["similarity"] < 0.99


def test_more_keywords_come_first_and_among_equals_the_rarer(place: Place) -> None:
    place.add(
        1,
        [Text(f"苹果 香蕉 第{n}篇", f"both{n}") for n in range(3)]
        + [Text("苹果 樱桃", "rare"), Text("樱桃 香蕉 苹果", "all"), Text("香蕉", "one")],
    )
    found = place.retriever(1, limit=10, min_similarity=1.0).invoke("苹果，香蕉，樱桃")
    files = [one.metadata["fileName"] for one in found]
    assert files[:2] == ["all", "rare"]
    assert files[-1] == "one"
    assert [one.metadata["keywordScore"] for one in found] == [3, 2, 2, 2, 2, 1]


def test_each_leg_brings_twice_the_limit(place: Place) -> None:
    place.add(1, [Text(f"苹果 {n}") for n in range(30)])
    answer = place.retriever(1, limit=4, min_similarity=-1).retrieve("苹果")
    assert len(answer) == 4
    assert max(share.rank for hit in answer for share in hit.legs) <= 8


def test_one_long_file_does_not_take_every_place(place: Place) -> None:
    place.add(1, [Text(f"苹果 苹果树 {n}", "long.md") for n in range(40)] + [Text("苹果 汁 的 做法", "short.md")])
    plain = place.retriever(1).invoke("苹果树")
    assert {one.metadata["fileName"] for one in plain} == {"long.md"}
    capped = place.retriever(1, max_per_file=2).invoke("苹果树")
    assert [one.metadata["fileName"] for one in capped] == ["long.md", "long.md", "short.md"]


def test_the_texts_of_a_file_can_stand_together(place: Place) -> None:
    place.add(1, [Text("苹果 苹果 苹果", "a"), Text("苹果 香蕉 苹果", "b"), Text("苹果 樱桃 香蕉 葡萄 西瓜", "a")])
    apart = place.retriever(1, min_similarity=-1).invoke("苹果")
    assert [one.metadata["fileName"] for one in apart] == ["a", "b", "a"]
    together = place.retriever(1, min_similarity=-1, group_by_file=True).invoke("苹果")
    assert [one.metadata["fileName"] for one in together] == ["a", "a", "b"]


def test_a_filter_narrows(place: Place) -> None:
    place.add(1, [Text(f"苹果 {n}", f"{n}.md", {"year": n, "lang": "zh" if n % 2 else "en"}) for n in range(6)])
    retriever = place.retriever(1, limit=10)

    def years(**how: Any) -> set[int]:
        return {one.metadata["year"] for one in retriever.invoke("苹果", **how)}

    assert years() == set(range(6))
    assert years(filter={"lang": "zh"}) == {1, 3, 5}
    assert years(filter={"year": {"$in": [1, 2]}, "lang": {"$eq": "en"}}) == {2}
    assert years(filter={"year": "1"}) == set()
    assert years(filter={"$and": [{"year": 4}, {"lang": "en"}]}) == {4}


def test_the_whole_language_of_filters(place: Place) -> None:
    place.add(
        1,
        [Text("苹果", f"{n}.md", {"year": n, "name": f"n{n}", **({"draft": n > 2} if n else {})}) for n in range(5)],
    )
    retriever = place.retriever(1, limit=10)

    def years(condition: dict[str, object]) -> list[int]:
        return sorted(one.metadata["year"] for one in retriever.invoke("苹果", filter=condition))

    assert years({"year": {"$gte": 1, "$lt": 3}}) == [1, 2]
    assert years({"year": {"$between": [2, 3]}}) == [2, 3]
    assert years({"year": {"$ne": 2}}) == [0, 1, 3, 4]
    assert years({"year": {"$nin": [0, 1]}}) == [2, 3, 4]
    assert years({"year": {"$gt": 2.5}}) == [3, 4]
    assert years({"draft": True}) == [3, 4]
    assert years({"draft": {"$exists": False}}) == [0]
    assert years({"draft": None}) == [0]
    assert years({"draft": {"$ne": True}}) == [1, 2]
    assert years({"name": {"$gte": "n3"}}) == [3, 4]
    assert years({"$or": [{"year": 0}, {"draft": True}]}) == [0, 3, 4]
    assert years({"$not": {"year": 0}}) == [1, 2, 3, 4]
    assert years({"$not": [{"year": 0}, {"name": "n1"}]}) == [2, 3, 4]
    assert years({"year": {"$lt": "3"}}) == []
    assert years({"draft": {"$in": [None, True]}}) == [0, 3, 4]
    assert years({"draft": {"$exists": True}}) == [1, 2, 3, 4]
    if isinstance(place, TablePlace):
        assert years({"name": {"$like": "n%"}}) == [0, 1, 2, 3, 4]
        assert years({"name": {"$ilike": "N3"}}) == [3]
    else:
        assert years({"year": [1, 2]}) == [1, 2], "as every filter of a store means it"
        with pytest.raises(InvalidArgument, match=r"\$like"):
            years({"name": {"$like": "n%"}})


def test_a_store_that_is_a_users_own_serves_that_user_only(store: StorePlace) -> None:
    store.add(7, [Text("苹果")])
    own = store.store.for_user(7)
    assert len(HybridRetriever(own, 7, embeddings=store.embedder).invoke("苹果")) == 1
    with pytest.raises(InvalidArgument, match="'7'"):
        HybridRetriever(own, 8, embeddings=store.embedder)


def test_the_keyword_leg_can_go_by_relevance(place: Place) -> None:
    place.add(1, [Text(f"苹果 香蕉 {n}", "common") for n in range(8)] + [Text("樱桃", "rare")])
    by_count = place.retriever(1, min_similarity=1.0).invoke("苹果，香蕉，樱桃")
    assert by_count[0].metadata["fileName"] == "common"
    recommended = HybridRetrieverOptions.recommended(min_similarity=1.0)
    assert recommended.keyword_ranking == "relevance"
    by_relevance = place.retriever(1, recommended).invoke("苹果，香蕉，樱桃")
    assert by_relevance[0].metadata["fileName"] == "rare"
    assert by_relevance[0].metadata["matchedKeywords"] == ["樱桃"]


@pytest.mark.parametrize("place", ["sqlite", "lance"], indirect=True)
def test_what_waits_for_its_vector_is_found_by_keywords(place: SharedPlace) -> None:
    place.add(1, TEXTS)
    place.insert([("退款 刚刚写下", {"userId": 1}), ("退款 别人的", {"userId": 2})], embedded=False)
    answer = place.retriever(1).retrieve("退款")
    assert not answer.degraded
    (waiting,) = [hit for hit in answer if hit.score is None]
    assert (waiting.text, waiting.pending) == ("退款 刚刚写下", True)
    assert [share.leg for share in waiting.legs] == ["keyword"]
    assert [hit.pending for hit in answer if hit.score is not None] == [False]
