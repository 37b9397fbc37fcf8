"""Brings a document to a new text: finds what changed, writes that, and has it embedded."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from homing.buffer.embedding_buffer import EmbeddingBuffer
from homing.buffer.outbox import EmbedRequest
from homing.documents.archive import COLLECTION, Archive, Row, collection_of
from homing.documents.editing import Edit, edit
from homing.documents.layout import Stored
from homing.documents.saved import Changes
from homing.documents.splitting import embedded_text
from homing.errors import StoreError
from homing.records import VectorRecord
from homing.stores.store import Store

if TYPE_CHECKING:
    from apsw import Connection

log = logging.getLogger(__name__)

HOLD = 30.0
"""Seconds after which chunks are embedded even if the process died before their words were written."""
REMEMBERED = 8_000_000
"""Characters of the documents written last that are kept in memory, so that the next edit finds its place at once."""
PAGE = 500
"""Chunks whose words are written together: few enough that nobody waits long for the database."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did: the texts to be embedded and the ids to be taken out, and what else is told of it."""

    texts: dict[str, str]
    removed: tuple[str, ...]
    moved: tuple[str, ...]
    token: str
    unchanged: tuple[tuple[int, ...], ...]

    def changes(self) -> Changes:
        """The report. Made when somebody asks: most callers do not, and a hundred thousand ids take their time."""
        unchanged = tuple([f"{self.token}.{number}" for numbers in self.unchanged for number in numbers])
        return Changes(tuple(self.texts), unchanged, self.moved, self.removed)


class Writer:
    """Writes documents, each by one thread at a time. A write is durable and complete, or did not happen.

    The text, the places of the chunks and the requests to embed them are one transaction. Their words are written right
    after it, so that keywords find what still waits for its vector. Whoever is killed in between leaves the requests
    behind, and they do the rest.
    """

    def __init__(self, archive: Archive, buffer: EmbeddingBuffer, store: Store, *, settle: float) -> None:
        self._archive = archive
        self._buffer = buffer
        self._store = store
        self._settle = settle
        self._known: dict[tuple[int, int], Stored] = {}
        self._lock = threading.Lock()

    def write(self, project: str, document: str, text: str) -> Written:
        """Make the document say this; returns what changed."""
        done = self._commit(project, document, text)
        if done.texts or done.removed:
            collection = collection_of(project)
            try:
                self._store.delete(collection, done.removed)
                self._write_words(collection, document, done.texts)
            except StoreError as error:
                # The text is written and everything else is queued.
                log.warning("%s/%s: words are found when vectors are, in %.0f s: %s", project, document, HOLD, error)
        return done

    def remove(self, project: str, document: str | None) -> set[str]:
        """Take out a document, or with None the whole project; returns the names of those that there were."""
        collection = collection_of(project)
        with self._archive.database.writing() as connection:
            if document is None:
                rows = self._archive.rows(connection, project)
                connection.execute("INSERT OR IGNORE INTO document_drops(collection) VALUES (?)", (collection,))
            else:
                row = self._archive.find(connection, project, document)
                rows = [] if row is None else [row]
            ids = [one for row in rows for one in self._archive.remove(connection, row)]
            self._buffer.enqueue_within(connection, [EmbedRequest(collection, one, None) for one in ids])
        if document is None:
            self._store.drop(collection)
        else:
            self._store.delete(collection, ids)
        self._buffer.notify()
        return {row.id for row in rows}

    def finish_drops(self) -> bool:
        """Drop what deleted projects left, for a batch under way may have written to one; whether nothing is left."""
        left = False
        with self._archive.database.reading() as connection:
            dropped: list[tuple[Any, ...]] = connection.execute("SELECT collection FROM document_drops").fetchall()
        for (collection,) in dropped:
            if self._buffer.waiting(collection, removals=True):
                left = True
                continue
            with self._archive.database.reading() as connection:
                used = self._archive.rows(connection, collection.removeprefix(COLLECTION))
            if not used:
                self._store.drop(collection)
            with self._archive.database.writing() as connection:
                connection.execute("DELETE FROM document_drops WHERE collection = ?", (collection,))
        return not left

    def _commit(self, project: str, document: str, text: str) -> Written:
        while True:
            row, stored = self._read(project, document)
            if row is not None and stored.text == text:
                return Written({}, (), (), row.token, tuple(held.numbers for held in stored.chunks))
            # All that can be worked out is, before the file is locked.
            change = edit(stored, text, 0 if row is None else row.following)
            with self._archive.database.writing() as connection:
                now = self._archive.find(connection, project, document)
                if _version(now) != _version(row):
                    # Another process wrote this document meanwhile: look again at what it says now.
                    continue
                found = now or self._archive.create(connection, project, document)
                written, following = self._write(connection, found, change, text)
            self._remember(following, stored, change, text)
            return written

    def _write(self, connection: Connection, row: Row, change: Edit, text: str) -> tuple[Written, Row]:
        now = self._archive.write(connection, row, change.rewrite, chunks=change.chunks, following=change.following)
        texts = {row.chunk_id(one.number): embedded_text(text[one.start : one.end]) for one in change.changed}
        removed, moved = tuple(map(row.chunk_id, change.removed)), tuple(map(row.chunk_id, change.moved))
        collection = collection_of(row.project)
        self._buffer.enqueue_within(connection, [EmbedRequest(collection, one, None) for one in removed])
        self._buffer.enqueue_within(connection, _requests(collection, row.id, texts), hold=HOLD)
        return Written(texts, removed, moved, row.token, change.unchanged), now

    def _read(self, project: str, document: str) -> tuple[Row | None, Stored]:
        """The document as it is stored, from memory where it was written last by this process."""
        with self._archive.database.reading() as connection:
            row = self._archive.find(connection, project, document)
            if row is None:
                return None, Stored()
            known = self._known.get((row.key, row.revision))
            return row, known or self._archive.stored(connection, row)

    def _remember(self, row: Row, stored: Stored, change: Edit, text: str) -> None:
        front, back = change.rewrite.front, len(stored.chunks) - change.rewrite.back
        between = (block.chunks for block in change.rewrite.between)
        chunks = (*stored.chunks[:front], *between, *stored.chunks[back:])
        with self._lock:
            self._known.pop((row.key, row.revision - 1), None)
            self._known[row.key, row.revision] = Stored(text, row.blocks, chunks)
            while len(self._known) > 1 and sum(len(one.text) for one in self._known.values()) > REMEMBERED:
                del self._known[next(iter(self._known))]

    def _write_words(self, collection: str, document: str, texts: dict[str, str]) -> None:
        begun = time.monotonic()
        for page in _pages(texts.items()):
            known: dict[str, str] = {}
            if time.monotonic() - begun > HOLD / 2:
                # What takes so long to get here may have its vector already.
                known = {record.id: record.text for record in self._store.get(collection, [one for one, _ in page])}
            self._store.upsert(
                VectorRecord(one, collection, None, {"document": document}, text)
                for one, text in page
                if known.get(one) != text
            )
            with self._archive.database.writing() as connection:
                # Asked for again: a batch of another process may have been at it before its words were written.
                self._buffer.enqueue_within(connection, _requests(collection, document, dict(page)), hold=self._settle)
        self._buffer.notify()


def _version(row: Row | None) -> tuple[int, int] | None:
    return None if row is None else (row.key, row.revision)


def _requests(collection: str, document: str, texts: dict[str, str]) -> Iterator[EmbedRequest]:
    return (EmbedRequest(collection, one, text, {"document": document}) for one, text in texts.items())


def _pages(items: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page
