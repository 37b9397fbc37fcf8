"""A buffer with what it stands on, and what is put into it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from homing.buffer.embedding_buffer import BufferOptions, EmbeddingBuffer
from homing.buffer.outbox import EmbedRequest
from homing.database.sqlite import SqliteDatabase
from homing.embedders.provider import Kind
from homing.errors import EmbeddingError
from homing.stores.sqlite.store import SqliteStore
from homing.stores.store import Store
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix

QUICK = BufferOptions(batch_size=4, batch_seconds=0.05, backoff=0.01, attempts=2)


class Parts:
    """A buffer with what it stands on, all in one file."""

    def __init__(self, path: Path, provider: FakeEmbedder | None = None, options: BufferOptions = QUICK) -> None:
        self.provider = provider or FakeEmbedder()
        self.store: Store = SqliteStore(path)
        self.database = SqliteDatabase(path)
        self.buffer = EmbeddingBuffer(self.provider, self.store, self.database, options)

    def close(self) -> None:
        self.buffer.stop(10)
        self.database.close()
        self.store.close()

    def stored(self) -> dict[str, str]:
        return {one.id: one.text for one in self.store.records("notes") if one.embedding is not None}


class Choosy(FakeEmbedder):
    """Refuses texts that contain 毒."""

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        if any("毒" in text for text in texts):
            super().embed(texts, kind=kind)
            raise EmbeddingError("cannot embed this")
        return super().embed(texts, kind=kind)


def note(key: str, text: str) -> EmbedRequest:
    return EmbedRequest("notes", key, text, {"source": "test"})


def until(condition: object, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
