"""A model that was chosen but never fetched: words answer, and what to do is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import homing
from homing.app import Homing
from homing.config import load

HOME = Path(homing.__file__).parent / "examples" / "home.json"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Homing]:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load().settings
    chosen = settings.embedding.model_copy(update={"model": "all-MiniLM-L6-v2"})
    with homing.open(tmp_path / "data", settings=settings.model_copy(update={"embedding": chosen})) as opened:
        yield opened


def test_a_memory_is_kept_and_found_by_its_words(app: Homing) -> None:
    app.memory.remember("knowledge", "发票在每月第一个工作日寄出 invoice")
    app.engine.flush(5)
    for query in ("发票", "invoice"):
        found = app.memory.recall(query)
        assert (found.mode, found.reason) == ("keyword", "vector:MODEL_NOT_READY")
        assert found[0].text.startswith("发票")


def test_a_file_is_kept_and_found_by_its_words(app: Homing) -> None:
    app.knowledge().upload("灯塔看守人住在岛上。".encode(), "story.txt")
    found = app.knowledge().search("燈塔")
    assert found.degraded
    assert found[0].text == "灯塔看守人住在岛上。"


def test_devices_are_found_by_their_words(app: Homing, caplog: pytest.LogCaptureFixture) -> None:
    app.devices.load(HOME)
    answer = app.devices.ask("打开除卧室以外的灯")
    assert answer.steps[0].decision == "act"
    assert "homing models pull" in caplog.text
