"""Recall: several collections at once, by session and distance, from the source, honest when something is broken."""

from __future__ import annotations

import logging
import threading

import pytest

from homing.engine.search import HybridOptions
from homing.errors import InvalidArgument, ProviderUnavailable, RetrievalFailed, StoreError
from homing.rag.service import RAGService, RetrieveOptions
from homing.records import Match
from homing.stores.store import SearchOptions
from homing.vectors import Vector
from tests.rag.linked_memory import Memory


@pytest.fixture
def filled(memory: Memory) -> Memory:
    memory.knowledge.save("billing runs on the first of the month 账单 一号", entry_id="k1")
    memory.knowledge.save("the office has a garden 花园", entry_id="k2")
    memory.memory.save_observation("asked about billing 账单", session_key="s1", entry_id="o1")
    memory.memory.save_observation("asked about billing twice 账单", session_key="s2", entry_id="o2")
    memory.memory.save_reflection("billing matters to this person 帳單", session_key="s1", entry_id="r1")
    memory.learning.save("answer billing questions with a date", entry_id="l1")
    assert memory.buffer.flush()
    return memory


@pytest.mark.parametrize("query", ["billing 账单", "帳單", "what did we decide about billing?", "账单 billing １号"])
def test_recall_reaches_every_collection_nearest_first(filled: Memory, query: str) -> None:
    found = filled.rag.retrieve(query, limit=10)
    distances = [hit.distance for hit in found if hit.distance is not None]
    assert distances == sorted(distances)
    assert {hit.collection for hit in found} == {"knowledge", "observation", "reflection", "learning"}
    assert not found.degraded


def test_the_limit_holds_after_merging_and_per_collection(filled: Memory) -> None:
    assert len(filled.rag.retrieve("billing", limit=3)) == 3
    found = filled.rag.retrieve("billing", limit=10, limits={"observation": 1})
    assert sum(hit.collection == "observation" for hit in found) == 1


def test_only_the_named_collections_are_asked(filled: Memory) -> None:
    found = filled.rag.retrieve("billing", collections=("learning",))
    assert {hit.collection for hit in found} == {"learning"}
    with pytest.raises(InvalidArgument, match="known: knowledge, observation"):
        filled.rag.retrieve("billing", collections=("dreams",))


def test_a_session_is_strict_where_it_is_asked_for(filled: Memory) -> None:
    assert {hit.id for hit in filled.rag.retrieve("billing", session_key="s1")} == {"o1", "r1"}
    memories = ("observation", "reflection")
    found = filled.rag.retrieve("billing", limit=10, session_key="s1", session_scoped=memories)
    assert {hit.id for hit in found} == {"k1", "k2", "o1", "r1", "l1"}
    assert len(filled.rag.retrieve("billing", limit=10)) == 6


def test_a_rare_session_never_comes_back_empty(memory: Memory) -> None:
    for number in range(300):
        memory.memory.save_observation(f"billing note {number}", session_key="busy")
    memory.memory.save_observation("something about gardens", session_key="rare")
    memory.buffer.flush()
    assert len(memory.rag.retrieve("billing note", session_key="rare", mode="semantic")) == 1


def test_max_distance_leaves_out_what_is_far_and_zero_is_off(filled: Memory) -> None:
    everything = filled.rag.retrieve("billing 账单", limit=10, mode="semantic")
    far = max(hit.distance for hit in everything if hit.distance is not None)
    near = filled.rag.retrieve("billing 账单", limit=10, mode="semantic", max_distance=far - 0.01)
    assert 0 < len(near) < len(everything)
    assert all(hit.distance is not None and hit.distance <= far - 0.01 for hit in near)


def test_weights_change_the_order_between_collections(filled: Memory) -> None:
    plain = filled.rag.retrieve("billing 账单", limit=10)
    weighted = filled.rag.retrieve("billing 账单", limit=10, weights={"learning": 100.0})
    assert plain[0].collection != "learning"
    assert weighted[0].collection == "learning"


def test_hits_carry_the_content_as_it_is_now_and_gaps_are_refilled(filled: Memory) -> None:
    with filled.database.writing() as connection:
        connection.execute("DELETE FROM content WHERE id = 'o1'")
        connection.execute("UPDATE content SET text = 'rewritten' WHERE id = 'o2'")
    found = filled.rag.retrieve("asked about billing", collections=("observation",), limit=1)
    assert [(hit.id, hit.text) for hit in found] == [("o2", "rewritten")]


def test_many_gaps_in_a_row_are_refilled_too(memory: Memory) -> None:
    for number in range(60):
        memory.knowledge.save(f"billing note number {number}", entry_id=f"gone{number}")
    memory.knowledge.save("billing, mentioned once among many other unrelated matters of the house", entry_id="left")
    memory.buffer.flush()
    with memory.database.writing() as connection:
        connection.execute("DELETE FROM content WHERE id LIKE 'gone%'")
    found = memory.rag.retrieve("billing note number", limit=3, mode="semantic", collections=("knowledge",))
    assert [hit.id for hit in found] == ["left"]


def test_the_question_is_embedded_once(filled: Memory) -> None:
    before = filled.embedder.calls
    filled.rag.retrieve("billing")
    assert filled.embedder.calls == before + 1


@pytest.mark.parametrize("query", ["", "   "])
def test_an_empty_question_recalls_nothing_and_asks_nobody(filled: Memory, query: str) -> None:
    before = filled.embedder.calls
    assert len(filled.rag.retrieve(query)) == 0
    assert filled.embedder.calls == before


def test_what_waits_for_its_vector_is_found_by_keywords(filled: Memory) -> None:
    filled.embedder.fail_with = ProviderUnavailable("down")
    filled.knowledge.save("新的花园 规定", entry_id="new")
    filled.buffer.flush()
    filled.embedder.fail_with = None
    found = filled.rag.retrieve("花园 规定", limit=10)
    assert "new" in {hit.id for hit in found}
    assert next(hit for hit in found if hit.id == "new").score is None


def test_a_model_that_is_down_degrades_to_keywords(filled: Memory) -> None:
    filled.embedder.fail_with = ProviderUnavailable("down")
    found = filled.rag.retrieve("账单")
    assert found.degraded
    assert found.reason == "vector:PROVIDER_UNAVAILABLE"
    assert found.notice is not None
    assert {hit.id for hit in found} >= {"k1", "o1"}


class OneCollectionDown:
    """A real store in which one collection cannot be searched."""

    def __init__(self, memory: Memory, *broken: str) -> None:
        self.memory = memory
        self.broken = broken

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        if collection in self.broken:
            raise StoreError("the index is damaged")
        return self.memory.store.search(collection, vector, limit, options)

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        if collection in self.broken:
            raise StoreError("the index is damaged")
        return self.memory.store.search_text(collection, query, limit, options)

    def __getattr__(self, name: str) -> object:
        return getattr(self.memory.store, name)


def damaged(memory: Memory, *broken: str) -> RAGService:
    store = OneCollectionDown(memory, *broken)
    sources = {"knowledge": memory.knowledge, "learning": memory.learning}
    return RAGService(store=store, embedder=memory.embedder, sources=sources)  # type: ignore[arg-type]


def test_one_collection_that_fails_is_logged_and_left_out(filled: Memory, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = damaged(filled, "learning").retrieve("billing")
    assert {hit.collection for hit in found} == {"knowledge"}
    assert found.degraded
    assert found.reason == "learning:RETRIEVAL_FAILED"
    assert "'learning' failed" in caplog.text


def test_when_every_collection_fails_there_is_one_error(filled: Memory) -> None:
    with pytest.raises(RetrievalFailed, match="no collection could be searched") as caught:
        damaged(filled, "learning", "knowledge").retrieve("billing")
    assert set(caught.value.causes) == {"knowledge", "learning"}


def test_collections_are_searched_at_the_same_time(filled: Memory) -> None:
    meeting = threading.Barrier(4, timeout=5)

    class Meeting(OneCollectionDown):
        def search(
            self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
        ) -> list[Match]:
            meeting.wait()
            return super().search(collection, vector, limit, options)

    sources = dict.fromkeys(("knowledge", "observation", "reflection", "learning"), filled.memory)
    rag = RAGService(store=Meeting(filled), embedder=filled.embedder, sources=sources)  # type: ignore[arg-type]
    assert not rag.retrieve("billing").degraded


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"max_distance": -0.1}, {"max_distance": 2.5}])
def test_nonsense_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        RetrieveOptions(**wrong)  # type: ignore[arg-type]


def test_content_that_moved_to_another_session_is_not_shown_to_the_old_one(filled: Memory) -> None:
    filled.memory.update("observation", "o1", session_key="s2")
    found = filled.rag.retrieve("billing", session_key="s1")
    assert {hit.id for hit in found} == {"r1"}


def test_words_have_a_say_over_all_collections_unless_only_meaning_is_asked_for(memory: Memory) -> None:
    memory.knowledge.save("the billing code is " + "words that hide it " * 20 + "XK-4471", entry_id="exact")
    for number in range(5):
        memory.learning.save(f"billing code {number}")
    memory.buffer.flush()
    assert "exact" not in {hit.id for hit in memory.rag.retrieve("billing code XK-4471", mode="semantic")}
    wordy = HybridOptions(vector_weight=0.4, keyword_weight=0.6)
    sources = {"knowledge": memory.knowledge, "learning": memory.learning}
    rag = RAGService(store=memory.store, embedder=memory.embedder, sources=sources, hybrid=wordy)
    found = rag.retrieve("billing code XK-4471")
    assert "exact" in {hit.id for hit in found}
    assert [hit.distance for hit in found] == sorted(hit.distance for hit in found if hit.distance is not None)


def test_shares_of_the_legs_add_up_and_places_count_over_all_collections(filled: Memory) -> None:
    found = filled.rag.retrieve("billing 账单", limit=6)
    assert sorted(leg.rank for hit in found for leg in hit.legs if leg.leg == "vector") == [1, 2, 3, 4, 5, 6]
    for hit in found:
        assert hit.fused == pytest.approx(sum(leg.share for leg in hit.legs))


def test_max_distance_does_not_starve_a_hybrid_answer(filled: Memory) -> None:
    exact = filled.rag.retrieve("billing 账单", limit=10, mode="semantic", max_distance=0.6)
    hybrid = filled.rag.retrieve("billing 账单", limit=10, max_distance=0.6)
    assert [hit.id for hit in hybrid] == [hit.id for hit in exact] != []


def test_max_distance_keeps_keyword_answers_while_the_model_is_down(filled: Memory) -> None:
    filled.embedder.fail_with = ProviderUnavailable("down")
    found = filled.rag.retrieve("账单", max_distance=0.3)
    assert found.degraded
    assert "k1" in {hit.id for hit in found}
