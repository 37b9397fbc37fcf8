"""A memory with everything in one file, on the fake embedder."""

from __future__ import annotations

from pathlib import Path

from homing.buffer.embedding_buffer import BufferOptions, EmbeddingBuffer
from homing.database.sqlite import SqliteDatabase
from homing.rag.content import KnowledgeStore, LearningStore, MemoryStore
from homing.rag.embedding_link import EmbeddingLink
from homing.rag.service import RAGService
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder


class Memory:
    """The content stores, the buffer that embeds them, and the service that recalls."""

    def __init__(self, path: Path, *, link: bool = True) -> None:
        self.embedder = FakeEmbedder(128)
        self.store = SqliteStore(path)
        self.database = SqliteDatabase(path)
        self.buffer = EmbeddingBuffer(self.embedder, self.store, self.database, BufferOptions(batch_seconds=0.05))
        self.link = EmbeddingLink(self.buffer, self.store)
        on_save, on_delete = (self.link.on_save, self.link.on_delete) if link else (None, None)
        self.knowledge = KnowledgeStore(self.database, on_save=on_save, on_delete=on_delete)
        self.memory = MemoryStore(self.database, on_save=on_save, on_delete=on_delete)
        self.learning = LearningStore(self.database, on_save=on_save, on_delete=on_delete)
        self.rag = RAGService(
            store=self.store,
            embedder=self.embedder,
            sources={
                "knowledge": self.knowledge,
                "observation": self.memory,
                "reflection": self.memory,
                "learning": self.learning,
            },
        )

    def close(self) -> None:
        self.buffer.stop(10)
        self.database.close()
        self.store.close()
