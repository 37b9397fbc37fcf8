"""Loads rows into a collection: what is there with its text and its vector is passed over, the rest is embedded.

One process reads and writes, others embed. A batch is written, with its vectors, in one call, and is passed over ever
after; so whatever is killed, of the workers or this process itself, costs the batches that were under way and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from homing.bulk.rows import Row, Source
from homing.bulk.workers import Workers
from homing.documents.records import COLLECTION as PARAGRAPHS
from homing.engine import Engine
from homing.engine.work import IMPORT
from homing.errors import EmbeddingError, InvalidArgument
from homing.memory.content import COLLECTIONS as MEMORIES
from homing.progress import Progress, no_progress
from homing.records import VectorRecord
from homing.stores.copying import in_batches
from homing.stores.store import LoadsInBulk, Store

BATCH = 256
BATCH_CHARACTERS = 500_000
"""A batch ends at so many rows, or characters: some seconds of one core."""


@dataclass(frozen=True, slots=True)
class BulkLoaded:
    """What was done: rows that were read, embedded and written, that were there already, and that were no rows.

    `waiting` are texts that are written and found by words, but whose model failed: the background embeds them.
    """

    collection: str
    rows: int
    embedded: int
    unchanged: int
    waiting: int
    unreadable: int
    named: Sequence[str]


def load(
    engine: Engine,
    source: Source,
    collection: str,
    workers: Workers,
    *,
    model: str,
    batch: int = BATCH,
    progress: Progress = no_progress,
) -> BulkLoaded:
    """Load every row of a source; run again, it goes on with what is missing or has changed.

    `model` is the identity of what the workers embed with. Of rows with one id any may be the one that stays. Indexes
    of the engine that are dear to keep up are built at the end. Raises InvalidArgument where the collection is one of
    documents or memories, or is served by another model, and EmbeddingError where the first batch cannot be embedded.
    """
    store = engine.store
    if collection in (PARAGRAPHS, *MEMORIES) or collection.startswith(f"{PARAGRAPHS}:"):
        raise InvalidArgument(
            f"{collection!r} belongs to documents or memory, which keep more than records; load into a name of your own"
        )
    if (served := store.model_of(collection)) not in ("", model):
        raise InvalidArgument(f"collection {collection!r} is served by {served!r}; load with that model, not {model!r}")
    if wanted := engine.database.read(lambda transaction: engine.wanted.of(transaction, collection)):
        raise InvalidArgument(f"collection {collection!r} is changing to {wanted!r}; load when that is done")
    engine.database.write(engine.work.register)
    loading = _Loading(engine, collection, workers, model)
    total, rows = source.count(), 0
    batches = in_batches(source.rows(), batch, BATCH_CHARACTERS)
    with store.loading() if isinstance(store, LoadsInBulk) else nullcontext():
        while some := next(batches, None):
            rows += len(some)
            loading.begin(some)
            while loading.full:
                loading.write_done()
            progress(loading.done, max(total, rows))
        while loading.under_way:
            loading.write_done()
            progress(loading.done, rows)
    return BulkLoaded(
        collection, rows, loading.embedded, loading.unchanged, loading.waiting, source.unreadable, source.named
    )


class _Loading:
    """What is under way, and how much is done."""

    def __init__(self, engine: Engine, collection: str, workers: Workers, model: str) -> None:
        self._store = engine.store
        self._collection = engine.collection(collection)
        self._workers = workers
        self._model = model
        self.under_way: dict[int, list[VectorRecord]] = {}
        self.embedded = self.unchanged = self.waiting = 0

    @property
    def done(self) -> int:
        """Rows that need nothing more."""
        return self.embedded + self.unchanged + self.waiting

    @property
    def full(self) -> bool:
        """Whether enough is under way."""
        return len(self.under_way) >= self._workers.window

    def begin(self, rows: Sequence[Row]) -> None:
        """Have those rows of a batch embedded that the store does not have."""
        new = _new(self._store, self._collection.name, rows, self._model)
        self.unchanged += len(rows) - len(new)
        if new:
            self.under_way[self._workers.submit([one.text for one in new])] = new

    def write_done(self) -> None:
        """Wait for a batch, and write all that are done in one call."""
        records: list[VectorRecord] = []
        for number, answer in self._workers.wait().items():
            batch = self.under_way.pop(number)
            if isinstance(answer, str):
                self._leave(batch, answer)
            else:
                rows = zip(batch, answer, strict=True)
                records += [replace(one, embedding=row, model=self._model) for one, row in rows]
        # Nothing is asked for with them, so this needs no transaction of the engine's.
        self._store.write(records)
        self.embedded += len(records)

    def _leave(self, batch: list[VectorRecord], why: str) -> None:
        """Write texts without vectors: words find them, and the background embeds them when the model answers again."""
        if not self.embedded:
            raise EmbeddingError(f"nothing could be embedded: {why}")
        self._collection.write(batch, priority=IMPORT)
        self.waiting += len(batch)


def _new(store: Store, collection: str, rows: Sequence[Row], model: str) -> list[VectorRecord]:
    """The records of those rows that are not there as they are, or have no vector; each id once."""
    by_id = {row.id: row for row in rows}
    names = list(by_id)
    held = {one.id: one for one in store.get(collection, names, embeddings=False)}
    lacking = store.texts(collection, list(held), lacking=model) if held else {}

    def is_new(row: Row) -> bool:
        found = held.get(row.id)
        return (
            found is None or row.id in lacking or (found.text, dict(found.metadata)) != (row.text, dict(row.metadata))
        )

    return [VectorRecord(row.id, collection, None, row.metadata, row.text) for row in by_id.values() if is_new(row)]
