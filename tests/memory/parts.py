"""A memory with everything in one file, on the fake embedder."""

from __future__ import annotations

from pathlib import Path

from homing.engine import Engine
from homing.engine.batch import Retries
from homing.engine.worker import WorkerOptions
from homing.memory import KnowledgeStore, LearningStore, MemoryStore, RAGService
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder

QUICK = WorkerOptions(retries=Retries(attempts=2, backoff=0.01))


class Parts:
    """The content stores, the engine that embeds what they keep, and the service that recalls."""

    def __init__(self, path: Path, embedder: FakeEmbedder | None = None) -> None:
        self.embedder = embedder or FakeEmbedder(128)
        self.store = SqliteStore(path)
        self.engine = Engine(self.store, self.embedder, options=QUICK)
        self.knowledge = KnowledgeStore(self.engine)
        self.memory = MemoryStore(self.engine)
        self.learning = LearningStore(self.engine)
        self.rag = RAGService(store=self.store, embedder=self.embedder)

    def close(self) -> None:
        self.engine.close(10)
        self.store.close()
