"""The clock of the machine is set, in both directions: nothing waits for it, and nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import homing
from homing.config import Settings
from homing.testing.fake import FakeEmbedder

YEAR = 365 * 86_400.0


@pytest.mark.parametrize("jumps", [(YEAR, -YEAR), (-YEAR, 2 * YEAR)])
def test_texts_are_saved_found_and_embedded_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jumps: tuple[float, float]
) -> None:
    real, off = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + off[0])
    with homing.open(tmp_path / "data", settings=Settings(), embedder=FakeEmbedder()) as app:
        for number, jump in enumerate((0.0, *jumps)):
            app.memory.remember("knowledge", f"灯塔 lamp {number}")
            off[0] += jump
            app.documents.save("novel", f"ch{number}", f"灯塔 lighthouse {number}")
            app.documents.flush()
            assert app.engine.flush()
            assert not app.engine.work.waiting()
        assert len(app.documents.search("novel", "灯塔")) == 3
        assert len(app.memory.recall("灯塔 lamp")) == 3
        assert app.store.check() == []
