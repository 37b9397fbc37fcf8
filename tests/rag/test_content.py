"""Content stores: saved durably, embedded through a callback that is optional, deleted without a trace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from homing.buffer.embedding_buffer import EmbeddingBuffer
from homing.embedders.chosen import Chosen
from homing.errors import InvalidArgument, NotFound
from homing.rag.content import KnowledgeStore
from homing.rag.embedding_link import EmbeddingLink
from homing.rag.service import RAGService
from homing.testing.fake import FakeEmbedder
from tests.rag.linked_memory import Memory


def test_what_is_saved_can_be_read_listed_changed_and_deleted(memory: Memory) -> None:
    entry = memory.knowledge.save("账单每月一号结算", category="billing", tags=["钱"], metadata={"by": "meeting"})
    assert memory.knowledge.get("knowledge", [entry.id]) == {entry.id: entry}
    changed = memory.knowledge.update("knowledge", entry.id, text="账单每月五号结算")
    assert (changed.text, changed.category, changed.tags) == ("账单每月五号结算", "billing", ("钱",))
    assert changed.created == entry.created
    assert changed.updated >= entry.updated
    assert [one.text for one in memory.knowledge.entries("knowledge")] == ["账单每月五号结算"]
    assert memory.knowledge.delete("knowledge", [entry.id, "never there"]) == 1
    assert memory.knowledge.entries("knowledge") == []


def test_an_id_given_twice_replaces(memory: Memory) -> None:
    memory.learning.save("first", entry_id="x")
    memory.learning.save("second", entry_id="x")
    assert [one.text for one in memory.learning.entries("learning")] == ["second"]


def test_observations_of_a_session_are_listed_apart(memory: Memory) -> None:
    memory.memory.save_observation("喜欢简短的回答", session_key="s1")
    memory.memory.save_observation("likes long answers", session_key="s2")
    memory.memory.save_reflection("要简短", session_key="s1")
    assert [one.text for one in memory.memory.entries("observation", session_key="s1")] == ["喜欢简短的回答"]
    assert len(memory.memory.entries("observation")) == 2


def test_without_a_callback_nothing_is_queued(unlinked: Memory) -> None:
    unlinked.knowledge.save("text")
    assert unlinked.buffer.pending == 0


@pytest.mark.parametrize("wrong", ["", "a\0b", "\ud800"])
def test_an_id_that_nothing_can_have_is_refused_and_nothing_is_queued_for_it(memory: Memory, wrong: str) -> None:
    memory.knowledge.save("灯塔", entry_id="a")
    with pytest.raises(InvalidArgument, match="id"):
        memory.knowledge.delete("knowledge", ["a", wrong])
    assert memory.knowledge.count("knowledge") == 1
    assert memory.buffer.flush()
    assert memory.buffer.dead_letters() == []


def test_deleting_content_deletes_its_vector_and_what_waits(memory: Memory) -> None:
    done = memory.knowledge.save("已经嵌入")
    memory.buffer.flush()
    waiting = memory.knowledge.save("还在排队")
    memory.knowledge.delete("knowledge", [done.id, waiting.id])
    assert memory.buffer.flush()
    assert memory.embedder.texts == ["已经嵌入"]
    assert list(memory.store.records("knowledge")) == []


def test_enabling_embedding_later_fills_in_what_is_missing(unlinked: Memory) -> None:
    unlinked.knowledge.save("一")
    unlinked.knowledge.save("二")
    steps: list[tuple[int, int]] = []
    assert unlinked.link.backfill(unlinked.knowledge, lambda done, total: steps.append((done, total))) == 2
    assert unlinked.buffer.flush()
    assert unlinked.link.backfill(unlinked.knowledge) == 0
    assert len(list(unlinked.store.records("knowledge"))) == 2
    assert steps[-1] == (2, 2)


def test_a_sweep_removes_vectors_whose_content_is_gone(memory: Memory) -> None:
    memory.knowledge.save("stays")
    memory.knowledge.save("goes", entry_id="goes")
    memory.buffer.flush()
    with memory.database.writing() as connection:
        connection.execute("DELETE FROM content WHERE id = 'goes'")
    assert memory.link.sweep(memory.knowledge, "knowledge") == 1
    assert [record.text for record in memory.store.records("knowledge")] == ["stays"]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_cannot_be_remembered(memory: Memory, text: str) -> None:
    with pytest.raises(InvalidArgument, match="nothing to remember"):
        memory.knowledge.save(text)


def test_reserved_metadata_cannot_be_forged(memory: Memory) -> None:
    with pytest.raises(InvalidArgument, match="session_key"):
        memory.memory.save_observation("x", session_key="mine", metadata={"session_key": "yours"})


def test_wrong_names_say_what_exists(memory: Memory) -> None:
    with pytest.raises(InvalidArgument, match="it has: observation, reflection"):
        memory.memory.entries("dreams")
    with pytest.raises(NotFound, match="no entry 'x'"):
        memory.knowledge.update("knowledge", "x", text="y")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"text": "half a pair \ud83d"}, "surrogate"),
        ({"text": "x", "metadata": {"when": object()}}, "metadata.when"),
        ({"text": "x", "tags": "urgent"}, "wrap it in a list"),
        ({"text": "x", "entry_id": ""}, "is empty"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    memory: Memory, fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidArgument, match=told):
        memory.knowledge.save(**fields)
    assert memory.knowledge.count("knowledge") == memory.buffer.pending == 0


def test_an_update_of_an_unknown_field_says_which_exist(memory: Memory) -> None:
    memory.knowledge.save("x", entry_id="x")
    with pytest.raises(InvalidArgument, match="no txt; it has category, metadata"):
        memory.knowledge.update("knowledge", "x", txt="y")


def test_updates_of_two_fields_at_once_both_hold(memory: Memory) -> None:
    memory.knowledge.save("x", entry_id="x")
    changes = [{"category": "money"}, {"tags": ["账单"]}, {"session_key": "s"}] * 5
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda change: memory.knowledge.update("knowledge", "x", **change), changes))
    entry = memory.knowledge.get("knowledge", ["x"])["x"]
    assert (entry.category, entry.tags, entry.session_key) == ("money", ("账单",), "s")


def test_a_collection_keeps_its_model_while_the_default_moves_on(memory: Memory) -> None:
    memory.knowledge.save("账单一号", entry_id="1")
    memory.buffer.flush()
    other = FakeEmbedder(32, model="other")
    moved = Chosen(other, lambda identity: memory.embedder if identity == memory.embedder.id else other)
    buffer = EmbeddingBuffer(moved, memory.store, memory.database)
    knowledge = KnowledgeStore(memory.database, on_save=EmbeddingLink(buffer, memory.store).on_save)
    knowledge.save("账单二号", entry_id="2")
    assert buffer.flush()
    [info] = memory.store.collections()
    assert (info.embedded, info.model) == (2, memory.embedder.id)
    rag = RAGService(store=memory.store, embedder=moved, sources={"knowledge": knowledge})
    found = rag.retrieve("账单", max_distance=0.9)
    assert {hit.id for hit in found} == {"1", "2"}
    assert not found.degraded


def test_changed_metadata_reaches_the_index(memory: Memory) -> None:
    memory.memory.save_observation("账单", session_key="s1", entry_id="o")
    memory.buffer.flush()
    memory.memory.update("observation", "o", session_key="s2")
    memory.buffer.flush()
    assert [record.metadata["session_key"] for record in memory.store.records("observation")] == ["s2"]
