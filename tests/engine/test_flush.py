"""`flush` is done when nothing waits, whoever is at it."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

from homing.embedders.provider import EmbeddingProvider
from homing.engine import Engine
from homing.records import VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from tests.documents.gated import Gated


def opened(path: Path, embedder: EmbeddingProvider) -> Engine:
    return Engine(SqliteStore(path), embedder)


def test_it_waits_for_what_another_engine_is_at(tmp_path: Path) -> None:
    slow = Gated()
    one, other = opened(tmp_path / "homing.db", slow), opened(tmp_path / "homing.db", FakeEmbedder())
    with closing(one.store), closing(other.store):
        one.collection("notes").write([VectorRecord("a", "notes", None, {}, "灯塔亮了")])
        assert slow.asked.wait(120)
        done: list[bool] = []
        waiting = threading.Thread(target=lambda: done.append(other.flush(120)))
        waiting.start()
        slow.answer.set()
        waiting.join(120)
        assert done == [True]
        assert other.store.pending("notes") == 0
        one.close()
        other.close()


def test_it_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    slow = Gated()
    one, other = opened(tmp_path / "homing.db", slow), opened(tmp_path / "homing.db", FakeEmbedder())
    with closing(one.store), closing(other.store):
        one.collection("notes").write([VectorRecord("a", "notes", None, {}, "灯塔亮了")])
        assert slow.asked.wait(120)
        assert other.flush(0.05) is False
        slow.answer.set()
        one.close()
        other.close()
