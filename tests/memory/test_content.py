"""Content stores: found by words at once, by meaning where there is an engine, deleted without a trace."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from homing.database import Transaction
from homing.embedders.provider import Chosen
from homing.engine import Engine
from homing.errors import InvalidArgument, NotFound, ProviderUnavailable
from homing.memory import BufferOptions, EmbeddingBuffer, EmbedRequest, KnowledgeStore, RAGService
from homing.records import VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from tests.memory.parts import Parts


def test_what_is_saved_can_be_read_listed_changed_and_deleted(memory: Parts) -> None:
    entry = memory.knowledge.save("账单每月一号结算", category="billing", tags=["钱"], metadata={"by": "meeting"})
    assert memory.knowledge.get("knowledge", [entry.id]) == {entry.id: entry}
    changed = memory.knowledge.update("knowledge", entry.id, text="账单每月五号结算")
    assert (changed.text, changed.category, changed.tags) == ("账单每月五号结算", "billing", ("钱",))
    assert changed.created == entry.created
    assert changed.updated >= entry.updated
    assert [one.text for one in memory.knowledge.list("knowledge")] == ["账单每月五号结算"]
    assert memory.knowledge.delete("knowledge", [entry.id, "never there"]) == 1
    assert memory.knowledge.list("knowledge") == []


def test_an_id_given_twice_replaces(memory: Parts) -> None:
    memory.learning.save("first", entry_id="x")
    memory.learning.save("second", entry_id="x")
    assert [one.text for one in memory.learning.list("learning")] == ["second"]


def test_observations_of_a_session_are_listed_apart(memory: Parts) -> None:
    memory.memory.save_observation("喜欢简短的回答", session_key="s1")
    memory.memory.save_observation("likes long answers", session_key="s2")
    memory.memory.save_reflection("要简短", session_key="s1")
    assert [one.text for one in memory.memory.list("observation", session_key="s1")] == ["喜欢简短的回答"]
    assert len(memory.memory.list("observation")) == 2


def test_without_an_engine_everything_is_kept_and_nothing_is_embedded(memory: Parts) -> None:
    plain = KnowledgeStore(memory.store)
    entry = plain.save("他守着燈塔")
    assert plain.get("knowledge", [entry.id]) == {entry.id: entry}
    assert memory.engine.work.waiting() == 0
    assert [hit.text for hit in memory.rag.retrieve("灯塔")] == ["他守着燈塔"]
    assert plain.delete("knowledge", [entry.id]) == 1


def test_a_callback_is_told_of_what_was_saved_and_deleted(memory: Parts) -> None:
    told: list[EmbedRequest] = []
    plain = KnowledgeStore(memory.store, embed=told.append)
    entry = plain.save("灯塔", session_key="s", metadata={"by": "me"})
    plain.delete("knowledge", [entry.id])
    assert told == [
        EmbedRequest("knowledge", entry.id, "灯塔", {"by": "me", "session_key": "s"}),
        EmbedRequest("knowledge", entry.id, None),
    ]


def test_the_callback_may_be_a_buffer_that_embeds(memory: Parts) -> None:
    buffer = EmbeddingBuffer(memory.embedder, memory.store, BufferOptions(batch_seconds=600))
    linked = KnowledgeStore(memory.store, embed=buffer.enqueue)
    kept, gone = linked.save("灯塔"), linked.save("花园")
    linked.delete("knowledge", [gone.id])
    assert buffer.flush()
    assert memory.embedder.texts == ["灯塔"]
    assert [record.id for record in memory.store.records("knowledge") if record.embedding is not None] == [kept.id]


@pytest.mark.parametrize("wrong", ["", "a\0b", "\ud800"])
def test_an_id_that_nothing_can_have_is_refused_and_nothing_is_queued_for_it(memory: Parts, wrong: str) -> None:
    memory.knowledge.save("灯塔", entry_id="a")
    with pytest.raises(InvalidArgument, match="id"):
        memory.knowledge.delete("knowledge", ["a", wrong])
    assert memory.knowledge.count("knowledge") == 1
    assert memory.engine.flush()
    assert memory.engine.work.dead_letters() == []


def test_deleting_content_deletes_its_vector_and_what_waits(memory: Parts) -> None:
    done = memory.knowledge.save("已经嵌入")
    memory.engine.flush()
    memory.embedder.fail_with = ProviderUnavailable("down")
    waiting = memory.knowledge.save("还在排队")
    memory.knowledge.delete("knowledge", [done.id, waiting.id])
    assert memory.engine.work.waiting() == 0
    memory.embedder.fail_with = None
    assert memory.engine.flush()
    assert list(memory.store.records("knowledge")) == []
    assert memory.store.check() == []


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_cannot_be_remembered(memory: Parts, text: str) -> None:
    with pytest.raises(InvalidArgument, match="nothing to remember"):
        memory.knowledge.save(text)


def test_reserved_metadata_cannot_be_forged(memory: Parts) -> None:
    with pytest.raises(InvalidArgument, match="session_key"):
        memory.memory.save_observation("x", session_key="mine", metadata={"session_key": "yours"})


def test_wrong_names_say_what_exists(memory: Parts) -> None:
    with pytest.raises(InvalidArgument, match="known: observation, reflection"):
        memory.memory.list("dreams")
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
    memory: Parts, fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidArgument, match=told):
        memory.knowledge.save(**fields)
    assert memory.knowledge.count("knowledge") == memory.engine.work.waiting() == 0


def test_an_update_of_an_unknown_field_says_which_exist(memory: Parts) -> None:
    memory.knowledge.save("x", entry_id="x")
    with pytest.raises(InvalidArgument, match="no txt; it has category, metadata"):
        memory.knowledge.update("knowledge", "x", txt="y")


def test_updates_of_two_fields_at_once_both_hold(memory: Parts) -> None:
    memory.knowledge.save("x", entry_id="x")
    changes = [{"category": "money"}, {"tags": ["账单"]}, {"session_key": "s"}] * 5
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda change: memory.knowledge.update("knowledge", "x", **change), changes))
    entry = memory.knowledge.get("knowledge", ["x"])["x"]
    assert (entry.category, entry.tags, entry.session_key) == ("money", ("账单",), "s")


def test_a_collection_is_served_by_its_model_until_the_new_default_has_embedded_it(memory: Parts) -> None:
    memory.knowledge.save("账单一号", entry_id="1")
    assert memory.engine.close() == 0
    other = FakeEmbedder(32, model="other", fail_with=ProviderUnavailable("down"))
    moved = Chosen(other, lambda identity: memory.embedder if identity == memory.embedder.id else other)
    engine = Engine(memory.store, moved)
    knowledge, rag = KnowledgeStore(engine), RAGService(store=memory.store, embedder=moved)
    knowledge.save("账单二号", entry_id="2")
    for model, failure in ((memory.embedder.id, ProviderUnavailable("down")), (other.id, None)):
        other.fail_with = failure
        assert engine.flush() == (failure is None)
        [info] = memory.store.collections()
        assert (info.embedded, info.model) == (2, model)
        found = rag.retrieve("账单", max_distance=0.9)
        assert {hit.id for hit in found} == {"1", "2"}
        assert not found.degraded
    engine.close()


def test_an_unchanged_text_keeps_its_vector(memory: Parts) -> None:
    memory.knowledge.save("账单", entry_id="1", category="money")
    memory.engine.flush()
    memory.embedder.fail_with, before = ProviderUnavailable("down"), memory.embedder.calls
    memory.knowledge.update("knowledge", "1", category="bills", tags=["钱"])
    [hit] = memory.rag.retrieve("账单", mode="keyword", metadata_filter={"category": "bills", "tags": "钱"})
    assert not hit.pending
    assert memory.engine.flush()
    assert memory.embedder.calls == before


def test_what_fails_half_way_leaves_neither_a_row_nor_a_record(memory: Parts) -> None:
    class Refuses(RuntimeError):
        pass

    class Refusing(SqliteStore):
        def write(self, records: Iterable[VectorRecord], transaction: Transaction | None = None) -> int:
            super().write(records, transaction)
            raise Refuses

    store = Refusing(memory.store.path)
    with pytest.raises(Refuses):
        KnowledgeStore(Engine(store, memory.embedder)).save("half")
    store.close()
    assert memory.knowledge.count("knowledge") == memory.engine.work.waiting() == 0
    assert list(memory.store.records("knowledge")) == []


def test_changed_metadata_reaches_the_index(memory: Parts) -> None:
    memory.memory.save_observation("账单", session_key="s1", entry_id="o")
    memory.engine.flush()
    memory.memory.update("observation", "o", session_key="s2")
    memory.engine.flush()
    assert [record.metadata["session_key"] for record in memory.store.records("observation")] == ["s2"]
