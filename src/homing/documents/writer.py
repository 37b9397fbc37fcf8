"""Brings a document to a new text: finds what changed, writes that, and has it embedded."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from homing.buffer.embedding_buffer import EmbeddingBuffer
from homing.buffer.outbox import EmbedRequest
from homing.documents.alignment import align
from homing.documents.archive import Archive, Row
from homing.documents.layout import Placed, rewrite
from homing.documents.saved import Changes
from homing.documents.splitting import Piece, embedded_text, split
from homing.records import VectorRecord
from homing.stores.store import Store

if TYPE_CHECKING:
    from apsw import Connection

COLLECTION = "documents:"
HOLD = 30.0
"""Seconds after which chunks are embedded even if the process died before their words were written."""
PAGE = 500
"""Chunks whose words are written together: few enough that nobody waits long for the database."""


def collection_of(project: str) -> str:
    """The collection that holds the chunks of a project, and of no other."""
    return COLLECTION + project


@dataclass(frozen=True, slots=True)
class _Edit:
    """What is to be embedded and what is to be taken out, by chunk id, and the report of it."""

    changes: Changes
    texts: dict[str, str]


class Writer:
    """Writes one document at a time. Each write is durable and complete, or did not happen.

    The text, the places of the chunks and the requests to embed them are one transaction. Their words are written right
    after it, so that keywords find what still waits for its vector. Whoever is killed in between leaves the requests
    behind, and they do the rest.
    """

    def __init__(self, archive: Archive, buffer: EmbeddingBuffer, store: Store, *, settle: float) -> None:
        self._archive = archive
        self._buffer = buffer
        self._store = store
        self._settle = settle

    def write(self, project: str, document: str, text: str) -> Changes:
        """Make the document say this; returns what changed."""
        edit = self._commit(project, document, text)
        if edit.texts or edit.changes.removed:
            collection = collection_of(project)
            self._store.delete(collection, edit.changes.removed)
            self._write_words(collection, document, edit.texts)
        return edit.changes

    def remove(self, project: str, document: str | None) -> int:
        """Take out a document, or with None the whole project; returns how many documents there were."""
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
        return len(rows)

    def finish_drops(self) -> None:
        """Drop what deleted projects left: a batch that was under way may have written to one of them."""
        with self._archive.database.reading() as connection:
            dropped: list[tuple[Any, ...]] = connection.execute("SELECT collection FROM document_drops").fetchall()
        for (collection,) in dropped:
            if self._buffer.waiting(collection, removals=True):
                continue
            with self._archive.database.writing() as connection:
                project = collection.removeprefix(COLLECTION)
                if not self._archive.rows(connection, project):
                    # Nothing can be written to it now: whoever saves into the project waits for this transaction.
                    connection.execute("DELETE FROM document_drops WHERE collection = ?", (collection,))
                    dropping = True
                else:
                    connection.execute("DELETE FROM document_drops WHERE collection = ?", (collection,))
                    dropping = False
            if dropping:
                self._store.drop(collection)

    def _commit(self, project: str, document: str, text: str) -> _Edit:
        while True:
            with self._archive.database.reading() as connection:
                row = self._archive.find(connection, project, document)
                before = [] if row is None else self._archive.chunks(connection, row)
                old = "" if row is None else self._archive.text(connection, row)
            if row is not None and old == text:
                return _Edit(Changes(unchanged=tuple(row.chunk_id(one.number) for one in before)), {})
            pieces = split(text)
            with self._archive.database.writing() as connection:
                now = self._archive.find(connection, project, document)
                if (now is None) != (row is None) or (now and row and now.revision != row.revision):
                    # Another process wrote this document meanwhile: look again at what it says now.
                    continue
                found = now or self._archive.create(connection, project, document)
                return self._write(connection, found, old, before, text, pieces)

    def _write(
        self, connection: Connection, row: Row, old: str, before: Sequence[Placed], text: str, pieces: Sequence[Piece]
    ) -> _Edit:
        aligned = align([one.digest for one in before], [one.digest for one in pieces])
        following, stamp = row.following, time.time()
        changed = set(aligned.changed)
        after: list[Placed] = []
        for at, (piece, former) in enumerate(zip(pieces, aligned.former, strict=True)):
            if former is None:
                number, following = following, following + 1
            else:
                number = before[former].number
            updated = stamp if former is None or at in changed else before[former].updated
            after.append(Placed(number, piece.start, piece.end, piece.digest, updated))
        self._archive.write(
            connection, row, rewrite(old, row.blocks, before, text, after), chunks=len(after), following=following
        )
        ids = [row.chunk_id(one.number) for one in after]
        removed = tuple(row.chunk_id(before[at].number) for at in aligned.removed)
        texts = {ids[at]: embedded_text(text[after[at].start : after[at].end]) for at in aligned.changed}
        collection = collection_of(row.project)
        self._buffer.enqueue_within(connection, [EmbedRequest(collection, one, None) for one in removed])
        self._buffer.enqueue_within(connection, _requests(collection, row.id, texts), hold=HOLD)
        changes = Changes(
            tuple(ids[at] for at in aligned.changed),
            tuple(ids[at] for at in aligned.same),
            tuple(ids[at] for at in aligned.moved),
            removed,
        )
        return _Edit(changes, texts)

    def _write_words(self, collection: str, document: str, texts: dict[str, str]) -> None:
        for page in _pages(texts.items()):
            self._store.upsert(VectorRecord(one, collection, None, {"document": document}, text) for one, text in page)
            with self._archive.database.writing() as connection:
                # Asked for again: a batch of another process may have been at it before its words were written.
                self._buffer.enqueue_within(connection, _requests(collection, document, dict(page)), hold=self._settle)
        self._buffer.notify()


def _requests(collection: str, document: str, texts: dict[str, str]) -> Iterator[EmbedRequest]:
    return (EmbedRequest(collection, one, text, {"document": document}) for one, text in texts.items())


def _pages(items: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page
