"""Seed 001, Embedding & RAG: REQ-EMB-002 to 007, 009 and 012 to 014, one test per scenario."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from homing.chat import Message
from homing.config import Settings
from homing.doctor import Finding
from homing.doctor.embedding import configured
from homing.errors import StoreError
from homing.memory import (
    BufferOptions,
    ContextAwareModelAdapter,
    EmbeddingBuffer,
    EmbedRequest,
    KnowledgeStore,
    LearningStore,
    MemoryStore,
    RAGService,
)
from homing.records import VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.stores.store import Near, SearchOptions, Store, Words
from homing.testing.fake import FakeEmbedder
from homing.testing.scripted_chat import ScriptedChat
from homing.vectors import Vector, as_vector


class Memory:
    """The seed's parts: content stores whose callback is the buffer, and the service that recalls."""

    def __init__(self, path: Path) -> None:
        self.embedder = FakeEmbedder(128)
        self.store = SqliteStore(path)
        self.buffer = EmbeddingBuffer(self.embedder, self.store, BufferOptions(batch_seconds=0.05))
        self.knowledge = KnowledgeStore(self.store, embed=self.buffer.enqueue)
        self.memory = MemoryStore(self.store, embed=self.buffer.enqueue)
        self.learning = LearningStore(self.store, embed=self.buffer.enqueue)
        self.rag = RAGService(store=self.store, embedder=self.embedder)

    def close(self) -> None:
        self.buffer.stop(10)
        self.store.close()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(tmp_path / "homing.db")
    yield memory
    memory.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = SqliteStore(tmp_path / "store.db")
    yield store
    store.close()


def record(key: str, *vector: float, **metadata: str) -> VectorRecord:
    return VectorRecord(key, "c", as_vector(vector), metadata, f"text of {key}")


class TestVectorStore:
    """REQ-EMB-002."""

    def test_given_a_vector_record_when_upsert_then_it_is_stored_and_retrievable(self, store: Store) -> None:
        store.upsert([record("a", 1.0, 0.0, kind="x")])
        [found] = store.search("c", as_vector([1.0, 0.0]))
        assert (found.id, found.collection, found.metadata) == ("a", "c", {"kind": "x"})

    def test_given_an_existing_id_when_upsert_then_the_previous_record_is_replaced(self, store: Store) -> None:
        store.upsert([record("a", 1.0, 0.0)])
        store.upsert([record("a", 0.0, 1.0)])
        [found] = store.search("c", as_vector([0.0, 1.0]))
        assert found.distance == pytest.approx(0.0, abs=1e-6)

    def test_given_stored_vectors_when_search_then_results_are_sorted_by_distance_ascending(self, store: Store) -> None:
        store.upsert([record("far", -1.0, 0.1), record("near", 1.0, 0.1), record("middle", 0.5, 1.0)])
        found = store.search("c", as_vector([1.0, 0.0]))
        assert [match.id for match in found] == ["near", "middle", "far"]

    def test_given_stored_records_when_delete_with_ids_then_they_are_removed(self, store: Store) -> None:
        store.upsert([record("a", 1.0, 0.0), record("b", 0.0, 1.0)])
        store.delete("c", ["a"])
        assert [match.id for match in store.search("c", as_vector([1.0, 0.0]))] == ["b"]


class TestSqliteVecIntegration:
    """REQ-EMB-003."""

    def test_vectors_live_in_sqlite_vec_virtual_tables_of_the_shared_database(self, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path / "homing.db")
        embedder = FakeEmbedder(dimensions=48)
        store.upsert([VectorRecord("a", "c", embedder.embed(["text"])[0], {}, "text", embedder.id)])
        store.close()
        connection = apsw.Connection(str(tmp_path / "homing.db"))
        tables = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE sql LIKE '%vec0%'")]
        connection.close()
        assert any("float[48]" in str(sql) and "cosine" in str(sql) for sql in tables)


class TestAsyncEmbeddingBuffer:
    """REQ-EMB-004."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Callable[[BufferOptions], tuple[EmbeddingBuffer, FakeEmbedder, Store]]]:
        store, embedder = SqliteStore(tmp_path / "b.db"), FakeEmbedder()
        yield lambda options: (EmbeddingBuffer(embedder, store, options), embedder, store)
        store.close()

    def test_given_a_started_buffer_when_enqueue_then_the_request_is_processed_in_the_background(
        self, make: Callable[[BufferOptions], tuple[EmbeddingBuffer, FakeEmbedder, Store]]
    ) -> None:
        buffer, _, store = make(BufferOptions(batch_seconds=0.01))
        buffer.start()
        buffer.enqueue(EmbedRequest("c", "a", "后台处理"))
        assert buffer.flush(20)
        assert [one.id for one in store.records("c") if one.embedding is not None] == ["a"]
        buffer.stop()

    @pytest.mark.parametrize(
        "options", [BufferOptions(batch_size=3, batch_seconds=600), BufferOptions(batch_seconds=0.3)]
    )
    def test_given_several_requests_when_size_or_time_is_reached_then_they_go_out_in_one_batch(
        self, make: Callable[[BufferOptions], tuple[EmbeddingBuffer, FakeEmbedder, Store]], options: BufferOptions
    ) -> None:
        buffer, embedder, store = make(options)
        buffer.enqueue_all(EmbedRequest("c", key, f"text {key}") for key in "abc")
        buffer.start()
        for _ in range(2_400):
            if buffer.pending == 0:
                break
            threading.Event().wait(0.05)
        assert embedder.calls == 1
        assert len(list(store.records("c"))) == 3
        buffer.stop()

    def test_given_stop_then_remaining_items_are_drained_before_exit(
        self, make: Callable[[BufferOptions], tuple[EmbeddingBuffer, FakeEmbedder, Store]]
    ) -> None:
        buffer, _, store = make(BufferOptions(batch_seconds=600))
        buffer.start()
        buffer.enqueue_all(EmbedRequest("c", str(number), f"text {number}") for number in range(20))
        assert buffer.stop() == 0
        assert len(list(store.records("c"))) == 20


class TestStoreIntegration:
    """REQ-EMB-005."""

    def test_knowledge_memory_and_learning_emit_embed_callbacks_on_save(self, memory: Memory) -> None:
        memory.knowledge.save("k")
        memory.memory.save_observation("o")
        memory.memory.save_reflection("r")
        memory.learning.save("l")
        assert memory.buffer.flush()
        assert [info.name for info in memory.store.collections() if info.embedded == 1] == [
            "knowledge",
            "learning",
            "observation",
            "reflection",
        ]

    def test_callbacks_are_optional_and_none_means_no_embedding(self, memory: Memory) -> None:
        plain = KnowledgeStore(memory.store)
        entry = plain.save("kept, not embedded")
        assert plain.get("knowledge", [entry.id])[entry.id].text == "kept, not embedded"
        assert memory.buffer.pending == 0


class TestRagService:
    """REQ-EMB-006."""

    def test_parallel_collection_search(self, memory: Memory) -> None:
        meeting = threading.Barrier(2, timeout=120)

        class Meeting(SqliteStore):
            def search_vector(
                self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
            ) -> list[Near]:
                meeting.wait()
                return super().search_vector(collection, vector, limit, options)

        memory.knowledge.save("billing", entry_id="k")
        memory.learning.save("billing", entry_id="l")
        memory.buffer.flush()
        store = Meeting(memory.store.path)
        collections = ("knowledge", "learning")
        found = RAGService(store=store, embedder=memory.embedder, collections=collections).retrieve("billing")
        store.close()
        assert {hit.id for hit in found} == {"k", "l"}

    def test_single_collection_failure(self, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
        class LearningDown(SqliteStore):
            def search_vector(
                self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
            ) -> list[Near]:
                if collection == "learning":
                    raise StoreError("disk trouble")
                return super().search_vector(collection, vector, limit, options)

            def search_words(
                self, collection: str, query: str, limit: int, options: SearchOptions | None = None
            ) -> Words:
                if collection == "learning":
                    raise StoreError("disk trouble")
                return super().search_words(collection, query, limit, options)

        memory.knowledge.save("billing", entry_id="k")
        memory.learning.save("billing", entry_id="l")
        memory.buffer.flush()
        store = LearningDown(memory.store.path)
        collections = ("knowledge", "learning")
        with caplog.at_level(logging.WARNING):
            found = RAGService(store=store, embedder=memory.embedder, collections=collections).retrieve("billing")
        store.close()
        assert [hit.id for hit in found] == ["k"]
        assert "'learning' failed" in caplog.text

    def test_results_sorted_and_limited(self, memory: Memory) -> None:
        for number in range(6):
            memory.knowledge.save("billing " * (6 - number) + f"other words {number} " * number)
            memory.learning.save("billing " * (6 - number) + f"lessons {number} " * number)
        memory.buffer.flush()
        found = memory.rag.retrieve("billing", limit=7)
        distances = [hit.distance for hit in found if hit.distance is not None]
        assert len(found) == 7
        assert distances == sorted(distances)


class TestAgentContextInjection:
    """REQ-EMB-007."""

    def test_a_semantic_context_section_is_injected_into_the_system_prompt_before_each_call(
        self, memory: Memory
    ) -> None:
        memory.knowledge.save("账单每月一号结算", entry_id="k")
        memory.buffer.flush()
        chat = ScriptedChat("一号")
        adapter = ContextAwareModelAdapter(chat, memory.rag)
        for question in ("账单什么时候结算", "账单呢"):
            adapter.complete([Message("system", "You help."), Message("user", question)])
        for system, _ in chat.asked:
            assert "Semantic Context (RAG)" in system.text
            assert "账单每月一号结算" in system.text


class TestDoctorCheck:
    """REQ-EMB-009."""

    def embedding(self, providers: dict[str, dict[str, str]], **embedding: str) -> Finding:
        settings = Settings.model_validate({"providers": providers, "embedding": embedding})
        return next(finding for finding in configured(settings) if finding.check == "embedding")

    def test_the_provider_configuration_is_validated(self) -> None:
        assert self.embedding({}, provider="").status == "skip"
        assert self.embedding({}, provider_id="nobody").status == "fail"
        assert self.embedding({"a": {"type": "anthropic"}}, provider_id="a").status == "fail"
        assert self.embedding({}, provider="bundled").status == "ok"

    def test_the_availability_of_the_api_key_is_validated(self) -> None:
        model = {"provider_id": "a", "model": "text-embedding-3-small"}
        assert "API key" in self.embedding({"a": {"type": "openai"}}, **model).detail
        assert self.embedding({"a": {"type": "openai", "api_key": "sk-1"}}, **model).status == "ok"
        ollama = {"provider_id": "a", "model": "nomic-embed-text"}
        assert self.embedding({"a": {"type": "ollama"}}, **ollama).status == "ok"


class TestMaxDistanceFiltering:
    """REQ-EMB-012."""

    @pytest.fixture
    def filled(self, memory: Memory) -> Memory:
        memory.knowledge.save("billing question", entry_id="near")
        memory.knowledge.save("gardens and trees", entry_id="far")
        memory.buffer.flush()
        return memory

    def test_given_max_distance_and_a_farther_result_then_it_is_excluded(self, filled: Memory) -> None:
        by_id = {hit.id: hit.distance for hit in filled.rag.retrieve("billing question", mode="semantic")}
        assert by_id["far"] is not None
        assert by_id["far"] > 0.5
        found = filled.rag.retrieve("billing question", mode="semantic", max_distance=0.5)
        assert [hit.id for hit in found] == ["near"]

    def test_given_max_distance_zero_then_all_results_are_returned(self, filled: Memory) -> None:
        assert len(filled.rag.retrieve("billing question", mode="semantic", max_distance=0.0)) == 2


class TestSessionScopedMetadataFiltering:
    """REQ-EMB-013."""

    @pytest.fixture
    def filled(self, memory: Memory) -> Memory:
        memory.memory.save_observation("billing", session_key="s1", entry_id="mine")
        memory.memory.save_observation("billing", session_key="s2", entry_id="other")
        memory.buffer.flush()
        return memory

    def test_given_a_session_key_then_only_entries_of_that_session_are_returned(self, filled: Memory) -> None:
        assert [hit.id for hit in filled.rag.retrieve("billing", session_key="s1")] == ["mine"]

    def test_given_no_session_key_then_all_results_are_returned(self, filled: Memory) -> None:
        assert {hit.id for hit in filled.rag.retrieve("billing")} == {"mine", "other"}


class TestVectorStoreSearchOptions:
    """REQ-EMB-014."""

    def test_given_none_options_then_nothing_is_filtered(self, store: Store) -> None:
        store.upsert([record("a", 1.0, 0.0, s="1"), record("b", 0.9, 0.1, s="2")])
        query = as_vector([1.0, 0.0])
        assert store.search("c", query, 10, None) == store.search("c", query, 10, SearchOptions())
        assert len(store.search("c", query, 10, None)) == 2

    def test_given_a_metadata_filter_then_all_pairs_must_match_and_the_limit_is_still_filled(
        self, store: Store
    ) -> None:
        store.upsert(record(f"no{number}", 1.0, number / 1000, s="1", t="x") for number in range(100))
        store.upsert(record(f"yes{number}", -1.0, number / 1000, s="2", t="x") for number in range(5))
        store.upsert([record("half", 1.0, 0.0, s="2", t="y")])
        found = store.search("c", as_vector([1.0, 0.0]), 5, SearchOptions({"s": "2", "t": "x"}))
        assert sorted(match.id for match in found) == [f"yes{number}" for number in range(5)]
