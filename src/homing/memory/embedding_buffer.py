"""Seed 001's asynchronous buffer: requests come in one by one, and go to the model in batches, in the background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homing.database import Transaction
from homing.embedders.provider import EmbeddingProvider
from homing.engine import Engine
from homing.engine.batch import Retries
from homing.engine.source import ModelsInUse
from homing.engine.work_state import DeadLetter
from homing.engine.worker import WorkerOptions
from homing.errors import InvalidArgument
from homing.records import VectorRecord
from homing.stores.store import Store


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """A text to embed and keep under `(collection, id)`; None in place of a text removes what is kept there."""

    collection: str
    id: str
    text: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BufferOptions:
    """When a batch goes out: when `batch_size` requests wait, or one has waited for `batch_seconds`.

    The others are those of the worker: see `WorkerOptions` and `Retries`.
    """

    batch_size: int = 32
    batch_seconds: float = 2.0
    batch_bytes: int = 256 * 1024
    workers: int = 1
    attempts: int = 3
    backoff: float = 1.0
    max_backoff: float = 60.0
    full: int = 10_000

    def __post_init__(self) -> None:
        if self.batch_seconds < 0:
            raise InvalidArgument(f"batch_seconds must not be negative; got {self.batch_seconds}")
        self.for_worker()

    def for_worker(self) -> WorkerOptions:
        """The same in the engine's words, which also refuse nonsense."""
        retries = Retries(self.attempts, self.backoff, self.max_backoff)
        return WorkerOptions(self.batch_size, self.batch_bytes, self.workers, self.full, retries)


class EmbeddingBuffer:
    """A thin door to the engine. `enqueue` returns when the text is durable and found by words; its vector follows.

    A process that is killed loses nothing: whoever opens the store next carries on. Without a provider nothing waits.
    """

    def __init__(
        self, provider: EmbeddingProvider | ModelsInUse | None, store: Store, options: BufferOptions | None = None
    ) -> None:
        self._options = options or BufferOptions()
        self._engine = Engine(store, provider, options=self._options.for_worker())

    @property
    def pending(self) -> int:
        """How many texts wait or are being embedded, in all processes."""
        return self._engine.work.waiting()

    def enqueue(self, request: EmbedRequest) -> None:
        """Take one request."""
        self.enqueue_all([request])

    def enqueue_all(self, requests: Iterable[EmbedRequest]) -> None:
        """Take several requests, those of each collection in one transaction. Of two for one id the last counts."""
        asked: dict[str, dict[str, EmbedRequest]] = {}
        for one in requests:
            asked.setdefault(one.collection, {})[one.id] = one
        for collection, by_id in asked.items():
            self._write(collection, by_id)
        if self._engine.worker.running:
            self._engine.worker.notify()

    def start(self) -> None:
        """Embed in the background from now on. Starting twice is fine."""
        self._engine.start()

    def stop(self, timeout: float | None = None) -> int:
        """Embed what this process asked for, then stop; returns how many texts still wait, of whomever."""
        return self._engine.worker.stop(timeout)

    def flush(self, timeout: float | None = None) -> bool:
        """Embed everything that waits now, started or not; whether nothing is left."""
        return self._engine.flush(timeout)

    def dead_letters(self) -> list[DeadLetter]:
        """What was given up."""
        return self._engine.work.dead_letters()

    def retry_dead_letters(self) -> int:
        """Ask for every dead letter again; returns how many there were."""
        count = self._engine.work.retry_dead()
        self._engine.worker.notify()
        return count

    def _write(self, collection: str, asked: Mapping[str, EmbedRequest]) -> None:
        kept = self._engine.collection(collection)
        # A batch goes out when its first request has waited long enough, and takes along what came since.
        due = self._engine.work.next_due()
        settle = self._options.batch_seconds if due is None else min(due, self._options.batch_seconds)

        def work(transaction: Transaction) -> None:
            removed = [one.id for one in asked.values() if one.text is None]
            if removed:
                kept.delete(removed, transaction)
            kept.write(
                [
                    VectorRecord(one.id, collection, None, one.metadata, one.text)
                    for one in asked.values()
                    if one.text is not None
                ],
                transaction,
                settle=settle,
            )

        self._engine.database.write(work, kept.scope)
