"""Makes the index say what the documents say: finds what is missing, out of date or damaged, and embeds that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from homing.buffer.embedding_buffer import EmbeddingBuffer
from homing.buffer.outbox import EmbedRequest
from homing.documents.archive import Archive, Row, collection_of
from homing.documents.layout import Stored
from homing.documents.splitting import embedded_text
from homing.embedders.chosen import provider_for
from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument
from homing.records import VectorRecord
from homing.stores.store import Store
from homing.vectors import Vector

PAGE = 500
ROUNDS = 5
"""How often a document is looked through that somebody writes meanwhile."""
LOOK = 0.05
"""Seconds between two looks at a batch that somebody else is at."""
TOLERANCE = 1e-3
"""How far the squared length of a stored vector may be from 1."""

Progress = Callable[[int, int], None]
"""Called with how many chunks are in order, and how many there are."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a reindex did.

    `embedded` chunks got a vector, `repaired` of them because theirs was damaged; `removed` entries of the index
    belonged to no chunk; `waiting` chunks have no vector yet, because the model did not answer or it was `canceled`.
    """

    documents: int = 0
    chunks: int = 0
    embedded: int = 0
    repaired: int = 0
    removed: int = 0
    waiting: int = 0
    canceled: bool = False


class Reindexer:
    """Checks chunks against the index. Whatever it does is in the queue: killed, the next one goes on."""

    def __init__(
        self, archive: Archive, buffer: EmbeddingBuffer, store: Store, embedder: EmbeddingProvider | None
    ) -> None:
        self._archive = archive
        self._buffer = buffer
        self._store = store
        self._embedder = embedder

    def run(
        self, rows: Sequence[Row], *, sweep: bool, batch_size: int, progress: Progress, cancelled: Callable[[], bool]
    ) -> Reindexed:
        """Bring the chunks of these documents in order; with `sweep`, also take out what belongs to no chunk."""
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= 4096:
            raise InvalidArgument(f"batch_size is a whole number between 1 and 4096; got {batch_size!r}")
        total = sum(row.chunks for row in rows)
        places = _places(rows)
        repaired = removed = 0
        canceled = False
        for row in rows:
            if canceled := cancelled():
                break
            repaired += self._look_through(row)
        if sweep and not canceled:
            removed = sum(self._sweep(project) for project in sorted({row.project for row in rows}))
        start = self._waiting(places)
        left = start
        progress(total - left, total)
        self._buffer.hurry()
        while left and not (canceled := canceled or cancelled()):
            worked = self._buffer.run_batch(batch_size)
            left = self._waiting(places)
            progress(max(0, total - left), total)
            if not worked:
                if not self._buffer.at_work:
                    break
                time.sleep(LOOK)
        return Reindexed(len(rows), total, start - left, repaired, removed, left, canceled)

    def _waiting(self, places: Iterable[tuple[str, str]]) -> int:
        return sum(self._buffer.waiting(collection, prefix) for collection, prefix in places)

    def _look_through(self, row: Row) -> int:
        """Queue the chunks of a document that are not in order; returns how many had a damaged vector."""
        damaged = 0
        for _ in range(ROUNDS):
            with self._archive.database.reading() as connection:
                now = self._archive.find(connection, row.project, row.id)
                stored = None if now is None else self._archive.stored(connection, now)
            if now is None or stored is None:
                break
            found, undisturbed = self._compare(now, stored)
            damaged += found
            if undisturbed:
                break
        return damaged

    def _compare(self, row: Row, stored: Stored) -> tuple[int, bool]:
        """How many chunks had a damaged vector, and whether nobody wrote the document meanwhile."""
        text, chunks = stored.text, stored.placed()
        collection = collection_of(row.project)
        model = self._model(collection)
        damaged = 0
        for page in _pages(chunks):
            texts = {row.chunk_id(one.number): embedded_text(text[one.start : one.end]) for one in page}
            known = {record.id: record for record in self._store.get(collection, list(texts))}
            broken = [one for one in texts if one in known and _is_damaged(known[one].embedding)]
            wrong = [one for one in texts if not _is_in_order(known.get(one), texts[one], model) or one in broken]
            # What waits already will be embedded; asking again would only have it done twice.
            asked = self._buffer.waiting_of(collection, wrong, dead=False)
            done = {one for one in asked - set(broken) if one in known and known[one].text == texts[one]}
            wrong = [one for one in wrong if one not in done]
            # A damaged vector is taken out first: who embeds would take it for one that is there.
            self._store.upsert(VectorRecord(one, collection, None, {"document": row.id}, texts[one]) for one in wrong)
            damaged += len(broken)
            if not self._queue(row, {one: texts[one] for one in wrong}):
                return damaged, False
        return damaged, True

    def _queue(self, row: Row, texts: dict[str, str]) -> bool:
        """Ask for vectors; False where the document was written meanwhile, so that these may be texts of before."""
        if not texts:
            return True
        collection = collection_of(row.project)
        with self._archive.database.writing() as connection:
            now = self._archive.find(connection, row.project, row.id)
            if now is None or (now.key, now.revision) != (row.key, row.revision):
                return False
            self._buffer.enqueue_within(
                connection,
                (EmbedRequest(collection, one, text, {"document": row.id}) for one, text in texts.items()),
            )
            return True

    def _model(self, collection: str) -> str | None:
        """The identity that vectors must have; None where there is nothing that embeds."""
        if self._embedder is None:
            return None
        return self._store.model_of(collection) or provider_for(self._embedder, "").id

    def _sweep(self, project: str) -> int:
        collection = collection_of(project)
        removed = 0
        for page in _pages(self._store.records(collection)):
            ids = [record.id for record in page]
            with self._archive.database.reading() as connection:
                known = self._archive.look_up(connection, ids)
            removed += self._store.delete(collection, [one for one in ids if one not in known])
        return removed


def _places(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [(collection_of(row.project), f"{row.token}.") for row in rows]


def _is_in_order(record: VectorRecord | None, text: str, model: str | None) -> bool:
    if record is None or record.text != text:
        return False
    return model is None or (record.embedding is not None and record.model == model)


def _is_damaged(vector: Vector | None) -> bool:
    if vector is None:
        return False
    length = float(vector @ vector)
    return not abs(length - 1) <= TOLERANCE


def _pages(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page
