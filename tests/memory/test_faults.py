"""A model with whatever fault blocks nothing: texts are kept, words answer, and the answer says why."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import homing
from homing.chat import Message
from homing.config import load
from homing.testing.scripted_chat import ScriptedChat
from tests.faults import FAULTS, opened


@pytest.mark.parametrize("fault", FAULTS)
def test_texts_are_kept_listed_recalled_by_words_added_to_prompts_and_forgotten(tmp_path: Path, fault: str) -> None:
    with opened(tmp_path, fault) as app:
        memory = app.memory
        entry = memory.remember("knowledge", "发票在每月第一个工作日寄出 invoice")
        memory.remember("observation", "不吃辣", session_key=7)
        assert memory.list("knowledge") == [entry]
        assert memory.count("observation") == 1
        for query in ("发票", "invoice"):
            found = memory.recall(query)
            assert [(hit.id, hit.pending) for hit in found] == [(entry.id, True)]
            assert (found.mode, found.degraded) == ("keyword", True)
            # A model that failed a moment ago is left alone for a while.
            assert found.reason in (f"vector:{FAULTS[fault][2]}", "vector:PROVIDER_UNAVAILABLE")
            assert found.notice is not None
        chat = ScriptedChat("第一个工作日")
        memory.wrap(chat, session_key=7).complete([Message("user", "发票什么时候寄出？")])
        assert "发票在每月第一个工作日寄出" in chat.asked[0][0].text
        assert memory.forget("knowledge", [entry.id]) == 1
        assert memory.list("knowledge") == []
        assert len(memory.recall("发票")) == 0
        assert memory.reindex() == 1


@pytest.mark.parametrize("fault", ["no key", "missing folder", "misspelt name"])
def test_it_is_said_once_however_many_collections_there_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    with opened(tmp_path, fault) as app, caplog.at_level(logging.WARNING):
        for collection in app.memory.collections:
            app.memory.remember(collection, "发票")
        assert not app.engine.flush()
        assert not app.engine.flush()
        assert len(caplog.records) == 1
        caplog.clear()
        assert len(app.memory.recall("发票")) == 4
        assert len(caplog.records) == 1


def test_what_was_remembered_meanwhile_is_embedded_when_the_model_is_there(tmp_path: Path) -> None:
    with opened(tmp_path, "no key") as app:
        app.memory.remember("knowledge", "发票在每月第一个工作日寄出")
    with homing.open(tmp_path / "data", settings=load(environ={}).settings) as app:
        assert app.engine.flush()
        [hit] = app.memory.recall("when do invoices go out?")
        assert not hit.pending
        assert hit.score is not None
