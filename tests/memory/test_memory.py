"""The memory of an open app: kept at once, embedded in the background, recalled in any language, forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import homing
from homing.chat import Message
from homing.config import Settings
from homing.engine import Engine
from homing.errors import InvalidArgument, ProviderUnavailable
from homing.memory import Memory
from homing.stores.registry import open_store
from homing.testing.fake import FakeEmbedder
from homing.testing.scripted_chat import ScriptedChat


class Folder:
    """A data folder that memories can be opened on, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.embedder: FakeEmbedder | None = FakeEmbedder(128)

    @contextmanager
    def open(self) -> Iterator[tuple[Memory, Engine]]:
        store = open_store(f"sqlite:///{self.path / 'homing.db'}")
        engine = Engine(store, self.embedder)
        yield Memory(engine), engine
        engine.close()
        store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def opened(folder: Folder) -> Iterator[tuple[Memory, Engine]]:
    with folder.open() as opened:
        yield opened


def test_every_collection_remembers_recalls_lists_and_forgets(opened: tuple[Memory, Engine]) -> None:
    memory, engine = opened
    for collection in memory.collections:
        memory.remember(collection, f"账单 billing in {collection}", entry_id="one", session_key="s", tags=["钱"])
    assert engine.flush(120)
    assert {hit.collection for hit in memory.recall("账单")} == set(memory.collections)
    for collection in memory.collections:
        assert [entry.tags for entry in memory.list(collection, session_key="s")] == [("钱",)]
        assert memory.get(collection, ["one"])["one"].session_key == "s"
        assert memory.forget(collection, ["one"]) == 1
        assert memory.count(collection) == 0
    assert len(memory.recall("账单")) == 0
    assert engine.flush(120)


def test_an_unknown_collection_lists_the_known_ones(opened: tuple[Memory, Engine]) -> None:
    memory, _ = opened
    for call in (
        lambda: memory.remember("dreams", "x"),
        lambda: memory.list("dreams"),
        lambda: memory.count("dreams"),
        lambda: memory.update("dreams", "x", text="y"),
        lambda: memory.forget("dreams", []),
    ):
        with pytest.raises(InvalidArgument, match="known: knowledge, observation, reflection, learning"):
            call()


def test_the_latest_are_listed_first_a_page_at_a_time(opened: tuple[Memory, Engine]) -> None:
    memory, _ = opened
    for number in range(5):
        memory.remember("learning", f"lesson {number}")
    pages = [memory.list("learning", limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [entry.text for page in pages for entry in page] == [f"lesson {number}" for number in (4, 3, 2, 1, 0)]
    with pytest.raises(InvalidArgument, match="negative"):
        memory.list("learning", limit=-1)


def test_closing_embeds_what_was_remembered(folder: Folder) -> None:
    with folder.open() as (memory, engine):
        for number in range(40):
            memory.remember("knowledge", f"text {number}")
        assert engine.close() == 0
        assert [info.embedded for info in engine.store.collections()] == [40]


def test_closing_after_recall_alone_does_not_work_through_what_others_left(folder: Folder) -> None:
    assert folder.embedder is not None
    folder.embedder.fail_with = ProviderUnavailable("down")
    with folder.open() as (memory, engine):
        memory.remember("knowledge", "text")
        assert engine.close() == 1
    folder.embedder.fail_with, before = None, folder.embedder.calls
    with folder.open() as (memory, engine):
        [hit] = memory.recall("text")
        assert (hit.text, hit.pending) == ("text", True)
        assert engine.close() == 1
    assert folder.embedder.calls == before + 1


def test_without_an_embedder_words_recall_and_a_later_one_is_asked_for_what_is_missing(folder: Folder) -> None:
    later, folder.embedder = folder.embedder, None
    with folder.open() as (memory, engine):
        memory.remember("knowledge", "他守着燈塔")
        memory.remember("learning", "灯要关")
        assert memory.reindex() == 0
        assert engine.close() == 0
    with folder.open() as (memory, _):
        found = memory.recall("灯塔", limit=1)
        assert [(hit.text, hit.pending) for hit in found] == [("他守着燈塔", False)]
        assert not found.degraded
    folder.embedder = later
    with folder.open() as (memory, engine):
        steps: list[tuple[int, int]] = []
        assert memory.reindex(lambda done, total: steps.append((done, total))) == 2
        assert steps[-1] == (2, 2)
        assert engine.flush()
        assert [info.embedded for info in engine.store.collections()] == [1, 1]
        assert memory.reindex() == 0


def test_what_was_copied_into_the_store_is_recalled_at_once_and_listed_by_a_reindex(
    folder: Folder, tmp_path: Path
) -> None:
    with folder.open() as (memory, engine):
        memory.remember("observation", "账单", entry_id="kept", session_key="s1")
        engine.flush()
        other = open_store(f"sqlite:///{tmp_path / 'other.db'}")
        other.write(engine.store.records("observation"))
    copied = Engine(other, folder.embedder)
    memory = Memory(copied)
    assert [hit.id for hit in memory.recall("账单", session_key="s1")] == ["kept"]
    assert memory.list("observation") == []
    assert memory.reindex() == 0
    [entry] = memory.list("observation", session_key="s1")
    assert (entry.id, entry.text) == ("kept", "账单")
    other.delete("observation", ["kept"])
    memory.reindex()
    assert memory.count("observation") == 0
    copied.close()
    other.close()


def test_a_wrapped_chat_model_knows_what_is_remembered(opened: tuple[Memory, Engine]) -> None:
    memory, engine = opened
    memory.remember("observation", "喜欢简短的回答", session_key=1)
    engine.flush(120)
    chat = ScriptedChat("好")
    memory.wrap(chat, session_key=1).complete([Message("user", "怎样回答")])
    memory.wrap(chat, session_key=2).complete([Message("user", "怎样回答")])
    assert [len(conversation) for conversation in chat.asked] == [2, 1]


@pytest.mark.slow
def test_the_app_has_a_memory_under_its_settings(tmp_path: Path) -> None:
    settings = Settings.model_validate({"embedding": {"rag": {"max_results": 1, "collections": ["knowledge"]}}})
    with homing.open(tmp_path, settings=settings) as app:
        app.memory.remember("knowledge", "账单每月一号结算")
        app.memory.remember("knowledge", "花园里有一棵树")
        app.memory.remember("learning", "账单的问题要回答日期")
    with homing.open(tmp_path, settings=settings) as app:
        found = app.memory.recall("when are invoices due?")
        assert [hit.text for hit in found] == ["账单每月一号结算"]
        assert found.mode == "hybrid"
        assert not found.degraded
        assert app.engine.work.waiting() == 0
