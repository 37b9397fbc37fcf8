"""Ties content to its vectors: what is saved is queued, what is deleted disappears, what is missing is filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from homing.buffer.embedding_buffer import EmbeddingBuffer
from homing.buffer.outbox import EmbedRequest
from homing.rag.content import ContentStore, Entry
from homing.stores.store import Store

if TYPE_CHECKING:
    from apsw import Connection

PAGE = 500

T = TypeVar("T")


class EmbeddingLink:
    """The callbacks of a content store: give `on_save` and `on_delete` to its constructor."""

    def __init__(self, buffer: EmbeddingBuffer, store: Store) -> None:
        self._buffer = buffer
        self._store = store

    def on_save(self, connection: Connection, entry: Entry) -> None:
        """Queue the entry in the transaction that saves it."""
        self._buffer.enqueue_within(connection, [_request(entry)])

    def on_delete(self, connection: Connection, collection: str, ids: Sequence[str]) -> None:
        """Queue the removal of the entries' vectors in the transaction that deletes the entries."""
        self._buffer.enqueue_within(connection, [EmbedRequest(collection, one, None) for one in ids])

    def backfill(self, content: ContentStore, progress: Callable[[int, int], None] | None = None) -> int:
        """Queue every entry whose vector is missing or out of date, and sweep; returns how many were queued.

        `progress` is told how many entries were looked at, and how many there are.
        """
        total = sum(content.count(collection) for collection in content.collections)
        looked_at = queued = 0
        for collection in content.collections:
            self.sweep(content, collection)
            for page in _pages(content.every(collection)):
                missing = self._missing(collection, page)
                self._buffer.enqueue_all(_request(entry) for entry in missing)
                looked_at, queued = looked_at + len(page), queued + len(missing)
                if progress is not None:
                    progress(looked_at, total)
        return queued

    def sweep(self, content: ContentStore, collection: str) -> int:
        """Remove vectors whose content is gone; returns how many."""
        removed = 0
        for page in _pages(self._store.records(collection)):
            known = content.get(collection, [record.id for record in page])
            removed += self._store.delete(collection, [record.id for record in page if record.id not in known])
        return removed

    def _missing(self, collection: str, page: Sequence[Entry]) -> list[Entry]:
        kept = {
            record.id: (record.text, dict(record.metadata))
            for record in self._store.get(collection, [entry.id for entry in page])
            if not self._buffer.embeds or record.embedding is not None
        }
        return [entry for entry in page if kept.get(entry.id) != (entry.text, entry.index_metadata)]


def _request(entry: Entry) -> EmbedRequest:
    return EmbedRequest(entry.collection, entry.id, entry.text, entry.index_metadata)


def _pages(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page
