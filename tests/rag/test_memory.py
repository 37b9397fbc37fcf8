"""The memory of an open app: saved at once, embedded in the background, recalled in any language, forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import homing
from homing.buffer.embedding_buffer import BufferOptions
from homing.chat import Message
from homing.config import Settings
from homing.errors import InvalidArgument, ProviderUnavailable
from homing.rag.memory import Rag
from homing.stores.registry import open_store
from homing.stores.store import Store
from homing.testing.fake import FakeEmbedder
from homing.testing.scripted_chat import ScriptedChat

WAITING = BufferOptions(batch_seconds=600)


class Folder:
    """A data folder that memories can be opened on, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.embedder: FakeEmbedder | None = FakeEmbedder(128)

    def open(self, buffering: BufferOptions | None = None) -> tuple[Rag, Store]:
        store = open_store(f"sqlite:///{self.path / 'homing.db'}")
        rag = Rag(store=store, embedder=self.embedder, database=self.path / "homing.db", buffering=buffering)
        return rag, store


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def rag(folder: Folder) -> Iterator[Rag]:
    rag, store = folder.open(BufferOptions(batch_seconds=0.02))
    yield rag
    rag.close()
    store.close()


def test_every_collection_remembers_recalls_lists_and_forgets(rag: Rag) -> None:
    for collection in rag.collections:
        rag.remember(collection, f"账单 billing in {collection}", entry_id="one", session_key="s", tags=["钱"])
    assert rag.buffer.flush(20)
    assert {hit.collection for hit in rag.retrieve("账单")} == set(rag.collections)
    for collection in rag.collections:
        assert [entry.tags for entry in rag.entries(collection, session_key="s")] == [("钱",)]
        assert rag.forget(collection, ["one"]) == 1
    assert len(rag.retrieve("账单")) == 0
    assert rag.buffer.flush(20)


def test_an_unknown_collection_lists_the_known_ones(rag: Rag) -> None:
    for call in (lambda: rag.remember("dreams", "x"), lambda: rag.entries("dreams"), lambda: rag.forget("dreams", [])):
        with pytest.raises(InvalidArgument, match="known: knowledge, observation, reflection, learning"):
            call()


def test_closing_embeds_what_was_saved(folder: Folder) -> None:
    rag, store = folder.open(WAITING)
    for number in range(40):
        rag.remember("knowledge", f"text {number}")
    assert rag.close() == 0
    assert [info.embedded for info in store.collections()] == [40]
    store.close()


def test_closing_after_recall_alone_does_not_work_through_what_others_left(folder: Folder) -> None:
    assert folder.embedder is not None
    folder.embedder.fail_with = ProviderUnavailable("down")
    rag, store = folder.open(WAITING)
    rag.remember("knowledge", "text")
    assert rag.close() == 1
    store.close()
    folder.embedder.fail_with, before = None, folder.embedder.calls
    rag, store = folder.open(WAITING)
    assert [hit.text for hit in rag.retrieve("text")] == ["text"]
    assert rag.close() == 1
    assert folder.embedder.calls == before + 1
    store.close()


def test_without_an_embedder_keywords_recall_and_a_later_one_is_filled_in(folder: Folder) -> None:
    later, folder.embedder = folder.embedder, None
    rag, store = folder.open()
    rag.remember("knowledge", "他守着燈塔")
    rag.remember("learning", "灯要关")
    assert rag.close() == 0
    store.close()
    rag, store = folder.open()
    assert [hit.text for hit in rag.retrieve("灯塔", limit=1)] == ["他守着燈塔"]
    rag.close()
    store.close()
    folder.embedder = later
    rag, store = folder.open()
    steps: list[tuple[int, int]] = []
    assert rag.backfill(lambda done, total: steps.append((done, total))) == 2
    assert steps[-1] == (2, 2)
    assert rag.buffer.flush()
    assert [info.embedded for info in store.collections()] == [1, 1]
    assert rag.backfill() == 0
    rag.close()
    store.close()


def test_a_wrapped_chat_model_knows_what_is_remembered(rag: Rag) -> None:
    rag.remember("observation", "喜欢简短的回答", session_key="s1")
    rag.buffer.flush(20)
    chat = ScriptedChat("好")
    rag.wrap(chat, session_key="s1").complete([Message("user", "怎样回答")])
    rag.wrap(chat, session_key="s2").complete([Message("user", "怎样回答")])
    assert [len(conversation) for conversation in chat.asked] == [2, 1]


@pytest.mark.slow
def test_the_app_has_a_memory_under_its_settings(tmp_path: Path) -> None:
    settings = Settings.model_validate({"embedding": {"rag": {"max_results": 1, "collections": ["knowledge"]}}})
    with homing.open(tmp_path, settings=settings) as app:
        app.rag.remember("knowledge", "账单每月一号结算")
        app.rag.remember("knowledge", "花园里有一棵树")
        app.rag.remember("learning", "账单的问题要回答日期")
    with homing.open(tmp_path, settings=settings) as app:
        found = app.rag.retrieve("when are invoices due?")
        assert [hit.text for hit in found] == ["账单每月一号结算"]
        assert found.mode == "hybrid"
        assert not found.degraded
        assert app.rag.buffer.pending == 0
