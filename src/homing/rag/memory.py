"""Remember, recall, forget: the content stores, the buffer that embeds them and the service that recalls, as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homing.buffer.embedding_buffer import BufferOptions, EmbeddingBuffer
from homing.chat.model import ChatModel
from homing.database.sqlite import SqliteDatabase
from homing.embedders.provider import EmbeddingProvider
from homing.engine.search import HybridOptions
from homing.errors import InvalidArgument
from homing.rag.adapter import MAX_TOKENS, MEMORIES, ContextAwareModelAdapter
from homing.rag.content import ContentStore, Entry, KnowledgeStore, LearningStore, MemoryStore
from homing.rag.embedding_link import EmbeddingLink
from homing.rag.service import RAGService, RetrieveOptions
from homing.records import Retrieved
from homing.stores.store import Store

if TYPE_CHECKING:
    from apsw import Connection

CLOSING_SECONDS = 60.0
COLLECTIONS = KnowledgeStore.collections + MemoryStore.collections + LearningStore.collections
"""What can be remembered and recalled."""


class Rag:
    """A memory. Content and queue live in the SQLite file `database`; vectors live in `store`, whichever that is.

    What is saved is durable when the call returns and is embedded in the background; the worker starts with the first
    save, or by `buffer.start()`. `options` are the defaults of `retrieve`; without `enabled`, `wrap` adds nothing.
    """

    def __init__(
        self,
        *,
        store: Store,
        embedder: EmbeddingProvider | None,
        database: str | Path,
        options: RetrieveOptions | None = None,
        hybrid: HybridOptions | None = None,
        enabled: bool = True,
        buffering: BufferOptions | None = None,
    ) -> None:
        self._options = options or RetrieveOptions()
        self._enabled = enabled
        self._database = SqliteDatabase(database)
        self._saved = self._closed = False
        self.buffer = EmbeddingBuffer(embedder, store, self._database, buffering)
        self._link = EmbeddingLink(self.buffer, store)
        self.knowledge = KnowledgeStore(self._database, on_save=self._on_save, on_delete=self._on_delete)
        self.memory = MemoryStore(self._database, on_save=self._on_save, on_delete=self._on_delete)
        self.learning = LearningStore(self._database, on_save=self._on_save, on_delete=self._on_delete)
        self._contents: tuple[ContentStore, ...] = (self.knowledge, self.memory, self.learning)
        sources = {name: content for content in self._contents for name in content.collections}
        self.service = RAGService(store=store, embedder=embedder, sources=sources, hybrid=hybrid)

    @property
    def collections(self) -> tuple[str, ...]:
        """What can be remembered and recalled."""
        return self.service.collections

    def remember(self, collection: str, text: str, **fields: Any) -> Entry:
        """Save a text in a collection; `fields` are entry_id, session_key, category, tags and metadata."""
        match collection:
            case "knowledge":
                return self.knowledge.save(text, **fields)
            case "observation":
                return self.memory.save_observation(text, **fields)
            case "reflection":
                return self.memory.save_reflection(text, **fields)
            case "learning":
                return self.learning.save(text, **fields)
        raise self._unknown(collection)

    def retrieve(self, query: str, options: RetrieveOptions | None = None, **changes: Any) -> Retrieved:
        """The content a question is about; see RAGService."""
        return self.service.retrieve(query, options or self._options, **changes)

    def entries(
        self, collection: str, *, session_key: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[Entry]:
        """What is remembered, the latest first."""
        return self._content(collection).entries(collection, session_key=session_key, limit=limit, offset=offset)

    def count(self, collection: str) -> int:
        """How many entries a collection holds."""
        return self._content(collection).count(collection)

    def forget(self, collection: str, ids: Sequence[str]) -> int:
        """Delete entries; they are not recalled any more. Returns how many there were."""
        return self._content(collection).delete(collection, ids)

    def backfill(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Queue everything whose vector is missing or out of date; returns how many were queued."""
        totals = [sum(map(content.count, content.collections)) for content in self._contents]
        queued = 0
        for number, content in enumerate(self._contents):
            before = sum(totals[:number])

            def step(done: int, _: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + done, sum(totals))

            queued += self._link.backfill(content, step)
        return queued

    def wrap(
        self,
        chat_model: ChatModel,
        *,
        session_key: str | None = None,
        session_scoped: Sequence[str] = MEMORIES,
        max_tokens: int = MAX_TOKENS,
    ) -> ContextAwareModelAdapter:
        """The chat model with this memory in its system prompt."""
        return ContextAwareModelAdapter(
            chat_model,
            self.service,
            session_key=session_key,
            session_scoped=session_scoped,
            options=self._options,
            max_tokens=max_tokens,
            enabled=self._enabled,
        )

    def close(self, timeout: float | None = CLOSING_SECONDS) -> int:
        """Embed what waits, if this process saved anything, and let go; returns how many requests are left.

        What is left is kept in the queue, and the next process that saves carries on with it. Closing twice is fine.
        """
        if self._closed:
            return 0
        self._closed = True
        left = self.buffer.stop(timeout, drain=self._saved)
        self._database.close()
        return left

    def _on_save(self, connection: Connection, entry: Entry) -> None:
        self._link.on_save(connection, entry)
        self._begin()

    def _on_delete(self, connection: Connection, collection: str, ids: Sequence[str]) -> None:
        self._link.on_delete(connection, collection, ids)
        self._begin()

    def _begin(self) -> None:
        self._saved = True
        self.buffer.start()

    def _content(self, collection: str) -> ContentStore:
        found = next((content for content in self._contents if collection in content.collections), None)
        if found is None:
            raise self._unknown(collection)
        return found

    def _unknown(self, collection: str) -> InvalidArgument:
        return InvalidArgument(f"there is no collection {collection!r}; known: {', '.join(self.collections)}")
