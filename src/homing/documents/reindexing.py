"""Whether the index says what the documents say, and what puts it right: the missing, stale or damaged is embedded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from homing.database import Database, Transaction
from homing.documents import archive
from homing.documents.archive import Row
from homing.documents.layout import Stored
from homing.documents.records import Namespace
from homing.documents.writing import records_of
from homing.engine import Engine
from homing.errors import InvalidArgument
from homing.progress import Progress
from homing.records import VectorRecord, text_hash
from homing.stores.store import Store
from homing.vectors import Vector

LOOK = 0.05
"""Seconds between two looks at a batch that somebody else is at."""
TOLERANCE = 1e-3
"""How far the squared length of a stored vector may be from 1."""
PAGE = 500
ROUNDS = 5
"""How often a document is looked at that somebody writes meanwhile."""
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


@dataclass(slots=True)
class _Disorder:
    """What is not in order among some chunks: records to write, those of damaged vectors, and ids without a vector."""

    wrong: list[VectorRecord]
    damaged: list[VectorRecord]
    misplaced: list[VectorRecord]
    lacking: list[str]

    def __bool__(self) -> bool:
        return bool(self.wrong or self.damaged or self.misplaced or self.lacking)


class Reindexer:
    """Checks chunks against the index. Whatever it asks for is a row: killed, the next one goes on."""

    def __init__(self, engine: Engine, namespace: Namespace) -> None:
        self._engine = engine
        self._own = namespace
        self._collection = engine.collection(namespace.collection)

    def run(
        self, rows: Sequence[Row], *, sweep: bool, batch_size: int, progress: Progress, cancelled: Callable[[], bool]
    ) -> Reindexed:
        """Bring the chunks of these documents in order; with `sweep`, also take out what belongs to no chunk."""
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= 4096:
            raise InvalidArgument(f"batch_size is a whole number between 1 and 4096; got {batch_size!r}")
        total = sum(row.chunks for row in rows)
        start = left = self._waiting(rows)
        repaired = removed = 0
        canceled = False
        for row in rows:
            if canceled := cancelled():
                break
            asked, damaged = self._look_through(row)
            start, repaired = start + asked, repaired + damaged
        if sweep and not canceled:
            removed = self._sweep()
        progress(max(0, total - start), total)
        if start:
            self._engine.work.flush()
            left = self._waiting(rows)
        while left and not (canceled := canceled or cancelled()):
            worked = self._engine.worker.run_batch(batch_size, early=True)
            before, left = left, self._waiting(rows)
            progress(max(0, total - left), total)
            failed = self._engine.work.state_of(self._own.collection, "")[2]
            if worked and (left < before or not failed):
                continue
            if worked or not self._engine.work.held():
                break
            time.sleep(LOOK)
        progress(max(0, total - left), total)
        return Reindexed(len(rows), total, max(0, start - left), repaired, removed, left, canceled)

    def _waiting(self, rows: Sequence[Row]) -> int:
        counts = self._engine.work.waiting_by_prefix(self._own.collection, archive.TOKEN)
        return sum(counts.get(row.token, 0) for row in rows)

    def _look_through(self, row: Row) -> tuple[int, int]:
        """Put right what is not in order in a document; returns how many vectors were asked for, and how many of those
        because theirs was damaged."""
        asked = damaged = 0
        for _ in range(ROUNDS):
            found = self._engine.database.read(partial(current, row=row))
            if found is None:
                break
            for page in pages(records_of(*found, self._own.collection)):
                disorder = self._compare(page)
                more = self._put_right(found[0], disorder) if disorder else 0
                if more is None:
                    # Somebody wrote the document meanwhile: these may be texts of before.
                    break
                asked, damaged = asked + more, damaged + len(disorder.damaged)
            else:
                break
        return asked, damaged

    def _compare(self, page: Sequence[VectorRecord]) -> _Disorder:
        found = _Disorder([], [], [], [])
        known = {one.id: one for one in self._engine.store.get(self._own.collection, [one.id for one in page])}
        for one in page:
            held = known.get(one.id)
            if held is None or held.text != one.text:
                found.wrong.append(one)
            elif held.embedding is not None and _is_damaged(held.embedding):
                found.damaged.append(one)
            else:
                if held.metadata != one.metadata:
                    found.misplaced.append(one)
                if held.embedding is None and self._engine.models.embeds:
                    found.lacking.append(one.id)
        return found

    def _put_right(self, row: Row, found: _Disorder) -> int | None:
        """Write what is wrong and ask for vectors; returns of how many, None where the document was written meanwhile.

        What waits already is not counted, and what was given up is asked for again.
        """

        def work(transaction: Transaction) -> int | None:
            now = archive.find(transaction, row.owner, row.project, row.id)
            if now is None or now.version != row.version:
                return None
            waiting = self._engine.work.lacking(transaction, self._own.collection, f"{row.token}.")
            # The record of a damaged vector is written anew: else it would keep the vector of its text.
            self._collection.delete([one.id for one in found.damaged], transaction)
            self._collection.write([*found.wrong, *found.damaged], transaction)
            self._engine.store.write(found.misplaced, transaction)
            self._collection.embed_again(found.lacking, transaction)
            ids = [one.id for one in (*found.wrong, *found.damaged)] + found.lacking
            return sum(not waiting.get(one) for one in ids) if self._engine.models.embeds else 0

        return self._engine.database.write(work, self._collection.scope)

    def _sweep(self) -> int:
        """Take out the records that belong to no chunk; returns how many there were."""

        def work(transaction: Transaction, ids: Sequence[str]) -> int:
            known = archive.existing(transaction, self._own.owner, ids)
            return self._collection.delete([one for one in ids if one not in known], transaction)

        database, removed = self._engine.database, 0
        for page in pages(self._engine.store.ids(self._own.collection)):
            if lost := strays(database, self._engine.store, page, self._own):
                removed += database.write(partial(work, ids=lost), self._collection.scope)
        return removed


def _is_damaged(vector: Vector) -> bool:
    length = float(vector @ vector)
    return not abs(length - 1) <= TOLERANCE


def disagreements(database: Database, store: Store, namespace: Namespace | None = None) -> Iterator[str]:
    """What does not agree, a sentence each. Reads everything but the vectors, which `Store.check` looks after."""
    own = namespace or Namespace()
    for row in database.read(partial(archive.rows, owner=own.owner)):
        yield from _of_document(database, store, row, own.collection)
    for page in pages(store.ids(own.collection)):
        if lost := strays(database, store, page, own):
            yield f"{len(lost)} records belong to no chunk of a document, {lost[0]!r} for one"
    for table in ("document_blocks", "document_chunks"):
        if count := database.read(partial(_orphans, table=table)):
            yield f"{count} rows of {table} belong to no document"


def current(transaction: Transaction, row: Row) -> tuple[Row, Stored] | None:
    """A document as it is now, if it still is."""
    now = archive.find(transaction, row.owner, row.project, row.id)
    return None if now is None else (now, archive.stored(transaction, now))


def strays(database: Database, store: Store, ids: Sequence[str], own: Namespace) -> list[str]:
    """Which of these ids of records belong to no chunk."""
    known = database.read(partial(archive.existing, owner=own.owner, ids=ids))
    # Whatever was deleted since the ids were read is gone from both.
    return [one.id for one in store.get(own.collection, [one for one in ids if one not in known], embeddings=False)]


def pages(items: Iterable[T]) -> Iterator[list[T]]:
    """The items, some at a time."""
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page


def _orphans(transaction: Transaction, table: str) -> int:
    statement = f"SELECT count(*) FROM {table} WHERE document NOT IN (SELECT key FROM documents)"
    return int(transaction.rows(statement)[0][0])


def _of_document(database: Database, store: Store, row: Row, collection: str) -> list[str]:
    wrong: list[str] = []
    for _ in range(ROUNDS):
        found = database.read(partial(current, row=row))
        wrong = [] if found is None else list(_compared(*found, store, collection))
        if not wrong:
            break
    return wrong


def _compared(row: Row, stored: Stored, store: Store, collection: str) -> Iterator[str]:
    name = f"document {row.id!r} of project {row.project!r}"
    digests = {row.chunk_id(one.number): one.digest for one in stored.placed()}
    if (row.characters, row.chunks) != (len(stored.text), len(digests)):
        yield f"{name} counts {row.characters} characters and {row.chunks} chunks, and has others"
    for page in pages(records_of(row, stored, collection)):
        known = {one.id: one for one in store.get(collection, [one.id for one in page], embeddings=False)}
        for one in page:
            held = known.get(one.id)
            if text_hash(one.text) != digests[one.id].hex():
                yield f"chunk {one.id!r} of {name} does not say what it was cut out for"
            if held is None:
                yield f"chunk {one.id!r} of {name} is not in the index"
            elif held.text != one.text:
                yield f"the index has another text for chunk {one.id!r} of {name}"
            elif held.metadata != one.metadata:
                yield f"the index has chunk {one.id!r} of {name} in another place"


@dataclass(frozen=True, slots=True)
class Overview:
    """How many documents a database has."""

    projects: int
    documents: int
    chunks: int


def overview(database: Database) -> Overview | None:
    """How things stand; None where there never were any documents. Makes no tables."""
    if not database.applied(archive.COMPONENT):
        return None
    [(projects, documents, chunks)] = database.read(
        lambda transaction: transaction.rows(
            "SELECT count(DISTINCT project), count(*), coalesce(sum(chunks), 0) FROM documents"
        )
    )
    return Overview(projects, documents, int(chunks))
