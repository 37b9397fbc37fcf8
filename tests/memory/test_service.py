"""Recall: several collections at once, by session and distance, honest when something is broken."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from homing.embedders.provider import Kind
from homing.errors import InvalidArgument, ProviderUnavailable, RetrievalFailed, StoreError
from homing.memory import RAGService, RetrieveOptions
from homing.memory.content import SessionKey
from homing.stores.sqlite.store import SqliteStore
from homing.stores.store import Near, SearchOptions, Store, Words
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix, Vector
from tests.memory.parts import Parts


@pytest.fixture
def filled(memory: Parts) -> Parts:
    memory.knowledge.save("billing runs on the first of the month 账单 一号", entry_id="k1")
    memory.knowledge.save("the office has a garden 花园", entry_id="k2")
    memory.memory.save_observation("asked about billing 账单", session_key="s1", entry_id="o1")
    memory.memory.save_observation("asked about billing twice 账单", session_key="s2", entry_id="o2")
    memory.memory.save_reflection("billing matters to this person 帳單", session_key="s1", entry_id="r1")
    memory.learning.save("answer billing questions with a date", entry_id="l1")
    assert memory.engine.flush()
    return memory


@pytest.mark.parametrize("query", ["billing 账单", "帳單", "what did we decide about billing?", "账单 billing １号"])
def test_recall_reaches_every_collection_nearest_first(filled: Parts, query: str) -> None:
    found = filled.rag.retrieve(query, limit=10)
    distances = [hit.distance for hit in found if hit.distance is not None]
    assert distances == sorted(distances)
    assert {hit.collection for hit in found} == {"knowledge", "observation", "reflection", "learning"}
    assert not found.degraded


class Placed(FakeEmbedder):
    """Puts texts that begin with `near` beside every question, and all others a little farther away."""

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        places = [1.0 if kind == "query" else 0.83 if text.startswith("near") else 0.8 for text in texts]
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        rows[:, 0], rows[:, 1] = places, np.sqrt(1 - np.square(places))
        return rows


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("when is the rent due", "rent is due on the first"),
        ("房租", "每月一号交房租"),
        ("房租 deadline 是哪天", "房租 deadline：每月１号"),
        ("帳單什麼時候出", "账单什么时候出：每月五号"),
    ],
)
def test_the_best_comes_first_and_the_nearest_only_where_that_was_asked_for(
    tmp_path: Path, query: str, right: str
) -> None:
    parts = Parts(tmp_path / "homing.db", Placed(8))
    parts.learning.save("near 🌱 seeds sprout in spring", entry_id="near")
    parts.knowledge.save(right, entry_id="right")
    for number in range(12):
        parts.knowledge.save(f"lesson {number}", entry_id=f"l{number}")
    assert parts.engine.flush()
    assert parts.rag.recall(query)[0].id == "right"
    assert parts.rag.retrieve(query)[0].id == "near"
    assert {hit.id for hit in parts.rag.recall(query)} == {hit.id for hit in parts.rag.retrieve(query)}
    parts.close()


def test_the_limit_holds_after_merging_and_per_collection(filled: Parts) -> None:
    assert len(filled.rag.retrieve("billing", limit=3)) == 3
    found = filled.rag.retrieve("billing", limit=10, limits={"observation": 1})
    assert sum(hit.collection == "observation" for hit in found) == 1


def test_only_the_named_collections_are_asked(filled: Parts) -> None:
    found = filled.rag.retrieve("billing", collections=("learning",))
    assert {hit.collection for hit in found} == {"learning"}
    with pytest.raises(InvalidArgument, match="known: knowledge, observation"):
        filled.rag.retrieve("billing", collections=("dreams",))


def test_a_session_is_strict_where_it_is_asked_for(filled: Parts) -> None:
    assert {hit.id for hit in filled.rag.retrieve("billing", session_key="s1")} == {"o1", "r1"}
    memories = ("observation", "reflection")
    found = filled.rag.retrieve("billing", limit=10, session_key="s1", session_scoped=memories)
    assert {hit.id for hit in found} == {"k1", "k2", "o1", "r1", "l1"}
    assert len(filled.rag.retrieve("billing", limit=10)) == 6


@pytest.mark.slow
def test_a_rare_session_never_comes_back_empty(memory: Parts) -> None:
    for number in range(300):
        memory.memory.save_observation(f"billing note {number}", session_key="busy")
    memory.memory.save_observation("something about gardens", session_key="rare")
    memory.engine.flush()
    assert len(memory.rag.retrieve("billing note", session_key="rare", mode="semantic")) == 1


def test_max_distance_leaves_out_what_is_far_and_zero_is_off(filled: Parts) -> None:
    everything = filled.rag.retrieve("billing 账单", limit=10, mode="semantic")
    far = max(hit.distance for hit in everything if hit.distance is not None)
    near = filled.rag.retrieve("billing 账单", limit=10, mode="semantic", max_distance=far - 0.01)
    assert 0 < len(near) < len(everything)
    assert all(hit.distance is not None and hit.distance <= far - 0.01 for hit in near)


def test_weights_change_the_order_between_collections(filled: Parts) -> None:
    plain = filled.rag.retrieve("billing 账单", limit=10)
    weighted = filled.rag.retrieve("billing 账单", limit=10, weights={"learning": 100.0})
    assert plain[0].collection != "learning"
    assert weighted[0].collection == "learning"


def test_hits_carry_the_content_as_it_is_now(filled: Parts) -> None:
    filled.memory.delete("observation", ["o1"])
    filled.memory.update("observation", "o2", text="rewritten about billing")
    found = filled.rag.retrieve("asked about billing", collections=("observation",), limit=1)
    assert [(hit.id, hit.text) for hit in found] == [("o2", "rewritten about billing")]


def test_many_deletions_in_a_row_leave_no_gap(memory: Parts) -> None:
    for number in range(60):
        memory.knowledge.save(f"billing note number {number}", entry_id=f"gone{number}")
    memory.knowledge.save("billing, mentioned once among many other unrelated matters of the house", entry_id="left")
    memory.engine.flush()
    memory.knowledge.delete("knowledge", [f"gone{number}" for number in range(60)])
    found = memory.rag.retrieve("billing note number", limit=3, mode="semantic", collections=("knowledge",))
    assert [hit.id for hit in found] == ["left"]


def test_the_question_is_embedded_once(filled: Parts) -> None:
    before = filled.embedder.calls
    filled.rag.retrieve("billing")
    assert filled.embedder.calls == before + 1


@pytest.mark.parametrize("query", ["", "   "])
def test_an_empty_question_recalls_nothing_and_asks_nobody(filled: Parts, query: str) -> None:
    before = filled.embedder.calls
    assert len(filled.rag.retrieve(query)) == 0
    assert filled.embedder.calls == before


def test_what_waits_for_its_vector_is_found_by_keywords(filled: Parts) -> None:
    filled.embedder.fail_with = ProviderUnavailable("down")
    filled.knowledge.save("新的花园 规定", entry_id="new")
    filled.engine.flush()
    filled.embedder.fail_with = None
    found = filled.rag.retrieve("花园 规定", limit=10)
    assert "new" in {hit.id for hit in found}
    assert next(hit for hit in found if hit.id == "new").score is None


def test_a_model_that_is_down_degrades_to_keywords(filled: Parts) -> None:
    filled.embedder.fail_with = ProviderUnavailable("down")
    found = filled.rag.retrieve("账单")
    assert found.degraded
    assert found.reason == "vector:PROVIDER_UNAVAILABLE"
    assert found.notice is not None
    assert {hit.id for hit in found} >= {"k1", "o1"}


class OneCollectionDown(SqliteStore):
    """A store in which some collections cannot be searched."""

    broken: tuple[str, ...] = ()

    def search_vector(
        self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
    ) -> list[Near]:
        self._look_at(collection)
        return super().search_vector(collection, vector, limit, options)

    def search_words(self, collection: str, query: str, limit: int, options: SearchOptions | None = None) -> Words:
        self._look_at(collection)
        return super().search_words(collection, query, limit, options)

    def _look_at(self, collection: str) -> None:
        if collection in self.broken:
            raise StoreError("the index is damaged")


@pytest.fixture
def damaged(filled: Parts) -> Iterator[OneCollectionDown]:
    store = OneCollectionDown(filled.store.path)
    yield store
    store.close()


def recalling(filled: Parts, store: Store) -> RAGService:
    return RAGService(store=store, embedder=filled.embedder, collections=("knowledge", "learning"))


def test_one_collection_that_fails_is_logged_and_left_out(
    filled: Parts, damaged: OneCollectionDown, caplog: pytest.LogCaptureFixture
) -> None:
    damaged.broken = ("learning",)
    with caplog.at_level(logging.WARNING):
        found = recalling(filled, damaged).retrieve("billing")
    assert {hit.collection for hit in found} == {"knowledge"}
    assert found.degraded
    assert found.reason == "learning:RETRIEVAL_FAILED"
    assert "'learning' failed" in caplog.text


def test_when_every_collection_fails_there_is_one_error(filled: Parts, damaged: OneCollectionDown) -> None:
    damaged.broken = ("knowledge", "learning")
    with pytest.raises(RetrievalFailed, match="no collection could be searched") as caught:
        recalling(filled, damaged).retrieve("billing")
    assert set(caught.value.causes) == {"knowledge", "learning"}


def test_collections_are_searched_at_the_same_time(filled: Parts) -> None:
    meeting = threading.Barrier(4, timeout=60)

    class Meeting(SqliteStore):
        def search_vector(
            self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
        ) -> list[Near]:
            meeting.wait()
            return super().search_vector(collection, vector, limit, options)

    store = Meeting(filled.store.path)
    found = RAGService(store=store, embedder=filled.embedder).retrieve("billing", deadline=60)
    store.close()
    assert not found.degraded


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"max_distance": -0.1}, {"max_distance": 2.5}])
def test_nonsense_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        RetrieveOptions(**wrong)  # type: ignore[arg-type]


def test_content_that_moved_to_another_session_is_not_shown_to_the_old_one(filled: Parts) -> None:
    filled.memory.update("observation", "o1", session_key="s2")
    found = filled.rag.retrieve("billing", session_key="s1")
    assert {hit.id for hit in found} == {"r1"}


def test_words_have_a_say_over_all_collections_unless_only_meaning_is_asked_for(memory: Parts) -> None:
    memory.knowledge.save("the billing code is " + "words that hide it " * 20 + "XK-4471", entry_id="exact")
    for number in range(5):
        memory.learning.save(f"billing code {number}")
    memory.engine.flush()
    assert "exact" not in {hit.id for hit in memory.rag.retrieve("billing code XK-4471", mode="semantic")}
    found = memory.rag.retrieve("billing code XK-4471")
    assert "exact" in {hit.id for hit in found}
    assert [hit.distance for hit in found] == sorted(hit.distance for hit in found if hit.distance is not None)


def test_shares_of_the_legs_add_up_and_places_count_over_all_collections(filled: Parts) -> None:
    found = filled.rag.retrieve("billing 账单", limit=6)
    assert sorted(leg.rank for hit in found for leg in hit.legs if leg.leg == "vector") == [1, 2, 3, 4, 5, 6]
    for hit in found:
        assert hit.fused == pytest.approx(sum(leg.share for leg in hit.legs))


def test_max_distance_does_not_starve_a_hybrid_answer(filled: Parts) -> None:
    exact = filled.rag.retrieve("billing 账单", limit=10, mode="semantic", max_distance=0.6)
    hybrid = filled.rag.retrieve("billing 账单", limit=10, max_distance=0.6)
    assert [hit.id for hit in hybrid] == [hit.id for hit in exact] != []


def test_max_distance_keeps_keyword_answers_while_the_model_is_down(filled: Parts) -> None:
    filled.embedder.fail_with = ProviderUnavailable("down")
    found = filled.rag.retrieve("账单", max_distance=0.3)
    assert found.degraded
    assert "k1" in {hit.id for hit in found}


class Asked(FakeEmbedder):
    """Embeds questions, and no text."""

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        if kind == "document":
            raise ProviderUnavailable("down")
        return super().embed(texts, kind=kind)


def test_what_was_just_remembered_is_found_by_its_words_also_under_a_distance(tmp_path: Path) -> None:
    memory = Parts(tmp_path / "homing.db", Asked(128))
    memory.knowledge.save("花园 规定", entry_id="new")
    [hit] = memory.rag.retrieve("花园 规定", max_distance=0.6)
    assert (hit.id, hit.pending, hit.distance) == ("new", True, None)
    assert len(memory.rag.retrieve("账单 规定 一号 结算", max_distance=0.6)) == 0


@pytest.mark.parametrize(
    ("saved", "asked", "other"), [(7, 7, 8), (7, "7", "8"), ("7", 7, 70), (0, 0, 1), (True, True, False), (1.5, 1.5, 1)]
)
def test_a_session_is_compared_as_text_whatever_it_was_given_as(
    memory: Parts, saved: SessionKey, asked: SessionKey, other: SessionKey
) -> None:
    memory.memory.save_observation("billing", session_key=saved, entry_id="mine")
    memory.memory.save_observation("billing", entry_id="nobody's")
    memory.engine.flush()
    assert [hit.id for hit in memory.rag.retrieve("billing", session_key=asked)] == ["mine"]
    assert len(memory.rag.retrieve("billing", session_key=other)) == 0
    assert [entry.id for entry in memory.memory.list("observation", session_key=asked)] == ["mine"]
    assert memory.memory.list("observation", session_key=other) == []
    memory.memory.update("observation", "mine", session_key=other)
    assert [hit.id for hit in memory.rag.retrieve("billing", session_key=other)] == ["mine"]


def test_a_session_that_is_no_scalar_is_refused(memory: Parts) -> None:
    with pytest.raises(InvalidArgument, match="session_key"):
        memory.memory.save_observation("billing", session_key=["s"])
    with pytest.raises(InvalidArgument, match="session_key"):
        memory.rag.retrieve("billing", session_key={"s": 1})


def test_a_model_that_is_down_is_said_once_and_not_once_for_each_collection(
    filled: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    filled.embedder.fail_with, before = ProviderUnavailable("down"), filled.embedder.calls
    with caplog.at_level(logging.WARNING):
        assert filled.rag.retrieve("账单").degraded
    assert [record.message for record in caplog.records] == ["向量检索失败，使用关键词检索降级: down"]
    assert filled.embedder.calls == before + 1


def test_answers_by_words_are_merged_by_how_much_of_the_question_they_cover(memory: Parts) -> None:
    memory.embedder.fail_with = ProviderUnavailable("down")
    for number in range(30):
        memory.learning.save(f"gardens, number {number}, and other things")
    memory.learning.save("billing and other things", entry_id="some")
    memory.knowledge.save("billing day", entry_id="whole")
    memory.knowledge.save("a house", entry_id="none")
    assert memory.rag.retrieve("billing day", limit=1)[0].id == "whole"
