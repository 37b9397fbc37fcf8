"""Search: two legs, one answer, an explanation per hit, and honest degradation."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from homing.embedders.local import LocalProvider
from homing.embedders.provider import Kind
from homing.engine.search import HybridOptions, search
from homing.errors import InvalidArgument, ProviderUnavailable, RetrievalFailed, StoreError
from homing.records import Mode, VectorRecord
from homing.stores.registry import open_store
from homing.stores.store import SearchOptions, Store, Words
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix

TEXTS = {
    "git": "生成Git提交信息 commit message",
    "file": "读取文件 read a file",
    "calc": "数学计算 arithmetic",
    "travel": "出發前確認護照 passport",
    "phone": "型號 ＧＰＴ－４ｏ 手機 📱",
}


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def store(tmp_path: Path, embedder: FakeEmbedder) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path / 'test.db'}")
    fill(store, embedder)
    yield store
    store.close()


def fill(store: Store, embedder: FakeEmbedder) -> None:
    rows = embedder.embed(list(TEXTS.values()))
    store.upsert(
        VectorRecord(key, "notes", row, {"length": len(text), "tags": ["all", key]}, text, embedder.id)
        for (key, text), row in zip(TEXTS.items(), rows, strict=True)
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("提交", "git"),
        ("commit message", "git"),
        ("怎么 read 文件", "file"),
        ("护照", "travel"),
        ("gpt-4o", "phone"),
        ("📱", "phone"),
    ],
)
def test_both_legs_find_chinese_english_mixed_traditional_full_width_and_emoji(
    store: Store, embedder: FakeEmbedder, query: str, expected: str
) -> None:
    found = search(query, "notes", store=store, embedder=embedder)
    assert found.mode == "hybrid"
    assert not found.degraded
    assert found[0].id == expected
    assert {share.leg for share in found[0].legs} == {"vector", "keyword"}


def test_a_hit_explains_itself(store: Store, embedder: FakeEmbedder) -> None:
    hit = search("提交 commit", "notes", store=store, embedder=embedder)[0]
    vector, keyword = hit.legs
    assert (vector.rank, keyword.rank) == (1, 1)
    assert vector.raw == vector.share == pytest.approx(hit.cosine)
    assert hit.fused == pytest.approx(vector.share + keyword.share)
    assert keyword.share > 0
    assert hit.keywords == ("提交", "commit")
    assert hit.distance == pytest.approx(1 - vector.raw)


def test_a_hit_fused_by_places_explains_itself(store: Store, embedder: FakeEmbedder) -> None:
    hit = search("提交 commit", "notes", store=store, embedder=embedder, options=HybridOptions(fusion="rrf"))[0]
    vector, keyword = hit.legs
    assert (vector.rank, keyword.rank) == (1, 1)
    assert vector.raw == pytest.approx(hit.cosine)
    assert vector.share == pytest.approx(0.7 / 61)
    assert keyword.share == pytest.approx(0.3 / 61)
    assert hit.fused == pytest.approx(vector.share + keyword.share)
    assert hit.keywords == ("提交", "commit")
    assert hit.distance == pytest.approx(1 - vector.raw)


def test_every_hit_of_a_healthy_search_has_a_score(store: Store, embedder: FakeEmbedder) -> None:
    options = HybridOptions(limit=5, min_score=0.99)
    hits = search("护照", "notes", store=store, embedder=embedder, options=options)
    assert [hit.id for hit in hits] == ["travel"]
    assert [share.leg for share in hits[0].legs] == ["keyword"]
    assert hits[0].score is not None
    assert hits[0].score < 0.99


def test_the_threshold_concerns_the_vector_leg_and_zero_is_a_threshold(store: Store, embedder: FakeEmbedder) -> None:
    semantic = HybridOptions(limit=10, mode="semantic")
    everything = search("提交 commit", "notes", store=store, embedder=embedder, options=semantic)
    assert len(everything) == len(TEXTS)
    above = search("提交 commit", "notes", store=store, embedder=embedder, options=replace(semantic, min_score=0.0))
    assert {hit.id for hit in above} == {hit.id for hit in everything if hit.score is not None and hit.score >= 0}


def test_filters_hold_in_both_legs(store: Store, embedder: FakeEmbedder) -> None:
    options = HybridOptions(metadata_filter={"tags": "file"})
    hits = search("提交 commit 文件", "notes", store=store, embedder=embedder, options=options)
    assert [hit.id for hit in hits] == ["file"]


@pytest.mark.parametrize("query", ["", "   ", "\n\t　"])
def test_a_blank_query_has_no_hits_and_asks_nobody(store: Store, embedder: FakeEmbedder, query: str) -> None:
    before = embedder.calls
    assert len(search(query, "notes", store=store, embedder=embedder)) == 0
    assert embedder.calls == before


@pytest.mark.parametrize(
    "query", ["NUL \0 here", "lone \ud800 surrogate", '" OR 1 --', "?", "*", "NEAR(a b)", "👩‍👩‍👧"]
)
def test_strange_queries_are_data(store: Store, embedder: FakeEmbedder, query: str) -> None:
    assert not search(query, "notes", store=store, embedder=embedder).degraded


def test_a_query_of_a_megabyte_is_answered(store: Store, embedder: FakeEmbedder) -> None:
    found = search("提交 commit " * 100_000, "notes", store=store, embedder=embedder)
    assert found[0].id == "git"


def test_limits(store: Store, embedder: FakeEmbedder) -> None:
    assert len(search("提交", "notes", store=store, embedder=embedder, options=HybridOptions(limit=0))) == 0
    assert len(search("提交", "notes", store=store, embedder=embedder, options=HybridOptions(limit=2))) == 2
    with pytest.raises(InvalidArgument, match="limit must not be negative"):
        HybridOptions(limit=-1)
    with pytest.raises(InvalidArgument, match="weight"):
        HybridOptions(vector_weight=-0.1)


def test_an_unknown_collection_has_no_hits(store: Store, embedder: FakeEmbedder) -> None:
    found = search("提交", "nothing here", store=store, embedder=embedder)
    assert len(found) == 0
    assert not found.degraded


def test_a_failing_model_degrades_to_keywords_and_says_so_in_both_languages(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    broken = FakeEmbedder(fail_with=ProviderUnavailable("the API is down"))
    with caplog.at_level(logging.WARNING):
        found = search("提交", "notes", store=store, embedder=broken)
    assert found.degraded
    assert found.mode == "keyword"
    assert found.reason == "vector:PROVIDER_UNAVAILABLE"
    assert found[0].id == "git"
    assert found[0].score is None
    assert found.notice is not None
    assert found.notice.zh == "语义搜索暂时不可用，已切换为关键词搜索"
    assert "Semantic search is unavailable" in found.notice.en
    assert "向量检索失败，使用关键词检索降级" in caplog.text


def test_a_real_model_that_cannot_load_degrades_too(store: Store, tmp_path: Path) -> None:
    found = search("提交", "notes", store=store, embedder=LocalProvider(tmp_path / "nowhere"))
    assert found.reason == "vector:MODEL_NOT_READY"
    assert found[0].id == "git"


def test_a_semantic_search_falls_back_to_keywords(store: Store) -> None:
    broken = FakeEmbedder(fail_with=ProviderUnavailable("the API is down"))
    found = search("提交", "notes", store=store, embedder=broken, options=HybridOptions(mode="semantic"))
    assert found.mode == "keyword"
    assert found.degraded
    assert found[0].id == "git"


def test_a_slow_model_is_left_behind_at_the_deadline(store: Store) -> None:
    over = threading.Event()

    class Slow(FakeEmbedder):
        def embed(self, *args: Any, **options: Any) -> Any:
            assert over.wait(600)
            return super().embed(*args, **options)

    found = search("提交", "notes", store=store, embedder=Slow(), options=HybridOptions(deadline=1.0))
    over.set()
    assert found.reason == "vector:TIMEOUT"
    assert found[0].id == "git"


def test_without_a_model_keywords_answer_and_that_is_no_failure(store: Store) -> None:
    found = search("提交", "notes", store=store, embedder=None)
    assert found.mode == "keyword"
    assert not found.degraded
    asked_for_meaning = search("提交", "notes", store=store, embedder=None, options=HybridOptions(mode="semantic"))
    assert asked_for_meaning.degraded


def test_vectors_of_another_model_are_never_compared(store: Store) -> None:
    other = FakeEmbedder(model="other")
    found = search("提交", "notes", store=store, embedder=other)
    assert found.reason == "vector:MODEL_MISMATCH"
    assert found.mode == "keyword"


class KeywordsDown:
    """A real store whose keyword index is out of order."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def search_words(self, collection: str, query: str, limit: int, options: SearchOptions | None = None) -> Words:
        raise StoreError("the keyword index is damaged")

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)


def test_a_failing_keyword_leg_degrades_to_vectors(
    store: Store, embedder: FakeEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    found = search("提交 commit", "notes", store=KeywordsDown(store), embedder=embedder)  # type: ignore[arg-type]
    assert found.mode == "semantic"
    assert found.reason == "keyword:STORE_ERROR"
    assert found[0].id == "git"
    assert found.notice is not None
    assert "关键词搜索暂时不可用" in found.notice.zh
    assert "关键词检索失败，使用向量检索降级" in caplog.text


def test_when_both_legs_fail_there_is_one_error_with_both_causes(store: Store) -> None:
    broken = FakeEmbedder(fail_with=ProviderUnavailable("the API is down"))
    with pytest.raises(RetrievalFailed, match="知识库检索失败") as caught:
        search("提交", "notes", store=KeywordsDown(store), embedder=broken)  # type: ignore[arg-type]
    assert caught.value.code == "RETRIEVAL_FAILED"
    assert isinstance(caught.value.causes["vector"], ProviderUnavailable)
    assert isinstance(caught.value.causes["keyword"], StoreError)


def test_many_threads_search_at_once(store: Store, embedder: FakeEmbedder) -> None:
    wrong: list[str] = []

    def ask(query: str, expected: str) -> None:
        for _ in range(20):
            hit = search(query, "notes", store=store, embedder=embedder)[0]
            if hit.id != expected:
                wrong.append(f"{query}: {hit.id}")

    threads = [threading.Thread(target=ask, args=pair) for pair in [("提交", "git"), ("护照", "travel")] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("mode", "fail_with"), [("hybrid", None), ("keyword", None), ("hybrid", ProviderUnavailable("down"))]
)
def test_only_what_waits_for_its_vector_is_pending_also_where_words_answer_alone(
    store: Store, embedder: FakeEmbedder, mode: Mode, fail_with: Exception | None
) -> None:
    store.write([VectorRecord("new", "notes", None, {}, "新的护照 passport")])
    embedder.fail_with = fail_with
    found = search("护照", "notes", store=store, embedder=embedder, options=HybridOptions(limit=2, mode=mode))
    assert {hit.id: hit.pending for hit in found} == {"new": True, "travel": False}


def test_answers_by_words_can_be_compared_between_collections(store: Store, embedder: FakeEmbedder) -> None:
    store.write(VectorRecord(f"{number}", "many", None, {}, f"passport number {number}") for number in range(50))
    store.write([VectorRecord("one", "few", None, {}, "passport"), VectorRecord("two", "few", None, {}, "garden")])
    words = HybridOptions(limit=1, mode="keyword")
    for collection in ("notes", "many", "few"):
        [hit] = search("passport", collection, store=store, embedder=embedder, options=words)
        assert 0 < hit.fused <= 1


def test_who_asks_several_collections_may_say_a_failure_once(
    store: Store, embedder: FakeEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    embedder.fail_with = ProviderUnavailable("down")
    seen: list[tuple[str, str]] = []
    search(
        "护照", "notes", store=store, embedder=embedder, on_failure=lambda leg, error: seen.append((leg, str(error)))
    )
    assert seen == [("vector", "down")]
    assert not caplog.records


def test_where_nothing_is_kept_nobody_is_asked_and_nothing_is_degraded(store: Store, embedder: FakeEmbedder) -> None:
    embedder.fail_with, before = ProviderUnavailable("down"), embedder.calls
    found = search("护照", "nothing", store=store, embedder=embedder)
    assert (len(found), found.degraded, embedder.calls) == (0, False, before)


class Noting(FakeEmbedder):
    """Notes which thread embeds."""

    in_process = False

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        self.thread = threading.get_ident()
        return super().embed(texts, kind=kind)


@pytest.mark.parametrize("in_process", [True, False])
def test_only_a_leg_that_may_wait_for_others_gets_a_thread(store: Store, *, in_process: bool) -> None:
    embedder = Noting()
    embedder.in_process = in_process
    found = search("提交 commit", "notes", store=store, embedder=embedder)
    assert (found[0].id, found.mode) == ("git", "hybrid")
    assert (embedder.thread == threading.get_ident()) == in_process


def test_a_store_that_cannot_be_read_at_all_fails_as_both_legs(store: Store, embedder: FakeEmbedder) -> None:
    store.close()
    with pytest.raises(RetrievalFailed) as caught:
        search("提交", "notes", store=store, embedder=embedder)
    assert set(caught.value.causes) == {"vector", "keyword"}
