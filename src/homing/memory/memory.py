"""Remember, recall, forget: what an open app has as `memory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homing.chat import ChatModel
from homing.engine import Engine
from homing.engine.engine import check_transactional
from homing.engine.search import HybridOptions
from homing.engine.work import IMPORT
from homing.memory.adapter import MAX_TOKENS, MEMORIES, ContextAwareModelAdapter
from homing.memory.content import ContentStore, Entry, SessionKey
from homing.memory.service import RAGService, RetrieveOptions
from homing.progress import Progress
from homing.records import Retrieved


class Memory(ContentStore):
    """A memory over an engine, whose worker embeds what is remembered and whose `work` says what waits.

    What is remembered is durable, and found by words, when the call returns. `options` are the defaults of `recall`;
    without `enabled`, `wrap` adds nothing.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        options: RetrieveOptions | None = None,
        hybrid: HybridOptions | None = None,
        enabled: bool = True,
    ) -> None:
        check_transactional(engine.store, "memories")
        super().__init__(engine)
        self._options = options or RetrieveOptions()
        self._enabled = enabled
        self.service = RAGService(store=engine.store, embedder=engine.models, hybrid=hybrid)

    def remember(self, collection: str, text: str, **fields: Any) -> Entry:
        """Save a text in a collection; `fields` are entry_id, session_key, category, tags and metadata."""
        return self.add(collection, text, **fields)

    def recall(self, query: str, options: RetrieveOptions | None = None, **changes: Any) -> Retrieved:
        """What a question is about; see RAGService."""
        return self.service.retrieve(query, options or self._options, **changes)

    def forget(self, collection: str, ids: Sequence[str]) -> int:
        """Delete entries; they are not recalled any more. Returns how many there were."""
        return self.delete(collection, ids)

    def reindex(self, progress: Progress | None = None) -> int:
        """Ask again for every vector that is missing, dead letters included; returns how many were asked for.

        `progress` is called with how many that are so far, and how many there will be. What was copied into the store
        is listed from then on, too.
        """
        for name in self.collections:
            self.list_again(name)
        if not self._engine.models.embeds:
            return 0
        asked, total = 0, sum(map(self._store.pending, self.collections))
        for name in self.collections:
            for count in self._engine.collection(name).embed_missing(priority=IMPORT):
                asked += count
                if progress is not None:
                    progress(asked, max(asked, total))
        return asked

    def wrap(
        self,
        chat_model: ChatModel,
        *,
        session_key: SessionKey | None = None,
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
