"""Takes texts at once and embeds them in the background, in batches, without losing one."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homing.buffer.batch import by_collection, is_kept, records_of
from homing.buffer.outbox import Backlog, Claimed, DeadLetter, EmbedRequest, Outbox
from homing.database.sqlite import SqliteDatabase
from homing.embedders.chosen import provider_for
from homing.embedders.provider import EmbeddingProvider
from homing.errors import (
    DimensionMismatch,
    HomingError,
    InvalidArgument,
    InvalidKey,
    ModelNotReady,
    ModelUnknown,
    ProviderUnavailable,
    RateLimited,
    StoreError,
    Timeout,
)
from homing.stores.store import Store

if TYPE_CHECKING:
    from apsw import Connection

log = logging.getLogger(__name__)

# Nothing is wrong with the texts when one of these comes back: they wait, for as long as it takes.
NOT_THE_TEXTS_FAULT = (
    DimensionMismatch,
    InvalidKey,
    ModelNotReady,
    ModelUnknown,
    ProviderUnavailable,
    RateLimited,
    StoreError,
    Timeout,
)


REMOVALS = "-"
"""In place of a model: what is removed needs none."""
POLL = 0.25
"""Seconds between two looks for what other processes queued."""
SHORTEST_POLL = 0.01


@dataclass(frozen=True, slots=True)
class BufferOptions:
    """When a batch goes out, and how failures are treated.

    A batch goes out when `batch_size` requests wait or one has waited for `batch_seconds`; it holds at most
    `batch_bytes` of text. A request that fails by itself is tried `attempts` times before it becomes a dead letter;
    waits between tries begin at `backoff` seconds and double. `full` is how many waiting requests are logged as a
    warning.
    """

    batch_size: int = 32
    batch_seconds: float = 2.0
    batch_bytes: int = 256 * 1024
    workers: int = 1
    attempts: int = 3
    backoff: float = 1.0
    longest_backoff: float = 60.0
    full: int = 10_000

    def __post_init__(self) -> None:
        if min(self.batch_size, self.batch_bytes, self.workers, self.attempts) < 1:
            raise InvalidArgument("batch_size, batch_bytes, workers and attempts are at least 1")
        if self.batch_seconds < 0 or self.backoff <= 0 or self.longest_backoff < self.backoff:
            raise InvalidArgument("batch_seconds is not negative, and 0 < backoff <= longest_backoff")


class EmbeddingBuffer:
    """A durable queue in front of a provider and a store.

    `enqueue` returns when the request is on disk and never waits for the model. Each text is embedded once, in order of
    arrival; of several for one id the newest wins. A process that is killed loses nothing: whoever opens the database
    next carries on, and does not embed again what was already stored. Without a provider texts are stored for keywords.
    """

    def __init__(
        self,
        provider: EmbeddingProvider | None,
        store: Store,
        database: SqliteDatabase,
        options: BufferOptions | None = None,
    ) -> None:
        self._provider = provider
        self._store = store
        self._database = database
        self._options = options or BufferOptions()
        self._outbox = Outbox(database)
        self._wake = threading.Condition()
        self._stopping = threading.Event()
        self._drains_asked = 0
        self._drains_done = 0
        self._at_work = 0
        self._failures: Counter[str] = Counter()
        self._left_behind: list[Claimed] = []
        self._warned_full = False
        self._threads: list[threading.Thread] = []

    @property
    def embeds(self) -> bool:
        """Whether there is a provider, or texts are kept for keywords only."""
        return self._provider is not None

    @property
    def pending(self) -> int:
        """How many requests wait or are being embedded, in all processes."""
        return self._outbox.waiting()

    def waiting(self, collection: str, prefix: str = "", *, removals: bool = False) -> int:
        """How many texts of a collection, whose ids begin so, have no vector yet; with `removals`, all that waits."""
        return self._outbox.waiting_in(collection, prefix, removals=removals)

    def waiting_of(self, collection: str, ids: Iterable[str], *, dead: bool = True) -> set[str]:
        """Which of these texts have no vector yet, because they wait or, with `dead`, were given up."""
        return self._outbox.waiting_of(collection, ids, dead=dead)

    def backlog(self) -> Backlog:
        """How full the queue is, and for how long."""
        return self._outbox.backlog()

    def enqueue(self, request: EmbedRequest) -> None:
        """Queue one request; durable when this returns."""
        self.enqueue_all([request])

    def enqueue_all(self, requests: Iterable[EmbedRequest]) -> None:
        """Queue several requests in one transaction."""
        with self._database.writing() as connection:
            self.enqueue_within(connection, requests)
        self.notify()

    def enqueue_within(self, connection: Connection, requests: Iterable[EmbedRequest], *, hold: float = 0.0) -> None:
        """Queue requests inside a transaction of the caller, together with what they are about; then `notify`.

        They are embedded after `hold` seconds, or as soon as they are flushed.
        """
        self._outbox.put(connection, requests, hold=hold)

    def notify(self) -> None:
        """Tell the workers of this process that something was queued."""
        with self._wake:
            self._wake.notify_all()

    def start(self) -> None:
        """Start the workers. Starting twice is fine."""
        if self._threads:
            return
        with self._wake:
            if self._threads:
                return
            # Each start has its own signal: a worker that outlived the timeout of an earlier stop still ends.
            self._stopping = threading.Event()
            self._threads = [
                threading.Thread(target=self._work, args=(self._stopping,), name=f"homing-buffer-{number}", daemon=True)
                for number in range(self._options.workers)
            ]
            for thread in self._threads:
                thread.start()

    def stop(self, timeout: float | None = None, *, drain: bool = True, grace: float = 0.0) -> int:
        """Embed what is left, then stop; returns how many requests remain (they are kept for the next start).

        Without a timeout it waits until the queue is empty or everything in it has failed once more. Without `drain`
        only the batches under way are finished, for which there are `grace` seconds beyond the timeout: a process that
        ends while a model is at work may abort.
        """
        deadline = None if timeout is None else time.monotonic() + timeout + grace
        if self._threads and drain:
            self.flush(timeout)
        self._stopping.set()
        self.notify()
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        self._threads = []
        left = self.pending
        if left and drain:
            log.warning("embedding buffer stopped with %d requests left; they are kept", left)
        return left

    def flush(self, timeout: float | None = None) -> bool:
        """Embed everything that waits now; whether nothing is left. Works with and without running workers."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self._outbox.hurry()
        if not self._threads:
            while self._run_batch() and (deadline is None or time.monotonic() < deadline):
                continue
            return self.pending == 0
        with self._wake:
            self._drains_asked += 1
            asked = self._drains_asked
            self._wake.notify_all()
            self._wake.wait_for(lambda: self._drains_done >= asked and not self._at_work, timeout)
        return self.pending == 0

    def run_batch(self, batch_size: int | None = None) -> bool:
        """Embed one batch of what is due in the calling thread, beside the workers; whether there was anything."""
        return self._run_batch(batch_size)

    def hurry(self) -> None:
        """Make everything due now, also what was put off or rests."""
        self._outbox.hurry()
        self.notify()

    @property
    def at_work(self) -> bool:
        """Whether a batch is being embedded in this process."""
        with self._wake:
            return self._at_work > 0

    def dead_letters(self) -> list[DeadLetter]:
        """Requests that were given up."""
        return self._outbox.dead_letters()

    def retry_dead_letters(self) -> int:
        """Queue every dead letter again; returns how many."""
        revived = self._outbox.revive()
        self.notify()
        return revived

    def _work(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            with self._wake:
                asked = self._drains_asked
                draining = asked > self._drains_done
            try:
                worked = self._run_batch() if draining or self._batch_is_due() else False
            except HomingError as error:
                log.warning("embedding buffer: %s", error)
                worked = False
            except Exception:
                log.exception("embedding buffer: unexpected failure; carrying on")
                worked = False
            with self._wake:
                if not worked:
                    self._drains_done = max(self._drains_done, asked)
                self._wake.notify_all()
                if not worked and self._drains_asked == self._drains_done and not stopping.is_set():
                    self._wake.wait(min(POLL, max(self._options.batch_seconds, SHORTEST_POLL)))

    def _batch_is_due(self) -> bool:
        self._give_back()
        return self._outbox.ready(self._options.batch_size, self._options.batch_seconds)

    def _run_batch(self, batch_size: int | None = None) -> bool:
        """One batch if anything is due; whether there was something."""
        with self._wake:
            self._at_work += 1
        claimed: list[Claimed] = []
        try:
            self._give_back()
            claimed = self._outbox.claim(batch_size or self._options.batch_size, self._options.batch_bytes)
            if claimed:
                self._warn_when_full()
                self._process_by_model(claimed)
            return bool(claimed)
        except HomingError:
            with self._wake:
                self._left_behind += claimed
            raise
        finally:
            with self._wake:
                self._at_work -= 1

    def _give_back(self) -> None:
        """What could not even be put off, because the database was locked: nobody else takes it while it is leased."""
        with self._wake:
            left, self._left_behind = self._left_behind, []
        if left:
            try:
                self._outbox.give_back(left)
            except HomingError:
                with self._wake:
                    self._left_behind += left
                raise

    def _process_by_model(self, claimed: Sequence[Claimed]) -> None:
        """A collection whose model is down, or gone, is no reason for the others to wait."""
        try:
            model_by_collection = {one.request.collection: "" for one in claimed}
            for collection in model_by_collection if self.embeds else ():
                model_by_collection[collection] = self._store.model_of(collection)
        except StoreError as error:
            self._wait_for_better_times(claimed, error, "")
            return
        parts: dict[str, list[Claimed]] = {}
        for one in claimed:
            model = REMOVALS if one.request.text is None else model_by_collection[one.request.collection]
            parts.setdefault(model, []).append(one)
        for model, part in parts.items():
            self._process(part, model)

    def _process(self, claimed: Sequence[Claimed], model: str) -> None:
        try:
            self._remove([one for one in claimed if one.request.text is None])
            self._keep([one for one in claimed if one.request.text is not None])
        except NOT_THE_TEXTS_FAULT as error:
            self._wait_for_better_times(claimed, error, model)
        except Exception as error:
            self._find_the_culprit(claimed, error, model)
        else:
            del self._failures[model]
            self._outbox.done(claimed)

    def _remove(self, claimed: Sequence[Claimed]) -> None:
        for collection, requests in by_collection(claimed):
            self._store.delete(collection, [one.id for one in requests])

    def _keep(self, claimed: Sequence[Claimed]) -> None:
        """Embed and store, except what a killed worker had stored but not taken off the queue."""
        fresh: dict[str, tuple[EmbeddingProvider | None, list[EmbedRequest]]] = {}
        for collection, requests in by_collection(claimed):
            provider = self._provider_of(collection)
            known = {record.id: record for record in self._store.get(collection, [one.id for one in requests])}
            _, together = fresh.setdefault("" if provider is None else provider.id, (provider, []))
            together += [one for one in requests if not is_kept(one, known.get(one.id), provider)]
        for provider, together in fresh.values():
            self._store.upsert(records_of(together, provider))

    def _provider_of(self, collection: str) -> EmbeddingProvider | None:
        """A collection keeps the model of its vectors, whatever the default is by now."""
        return None if self._provider is None else provider_for(self._provider, self._store.model_of(collection))

    def _wait_for_better_times(self, claimed: Sequence[Claimed], error: HomingError, model: str) -> None:
        self._failures[model] += 1
        seconds = min(self._options.backoff * 2 ** min(self._failures[model] - 1, 30), self._options.longest_backoff)
        seconds = max(seconds, getattr(error, "retry_after", None) or 0.0)
        log.warning("embedding %d texts is put off for %.1f s: %s", len(claimed), seconds, error)
        self._find_by_keywords_meanwhile([one for one in claimed if one.request.text is not None])
        self._outbox.put_off(claimed, f"{error.code}: {error}", seconds=seconds, counts=False)

    def _find_by_keywords_meanwhile(self, claimed: Sequence[Claimed]) -> None:
        try:
            for collection, requests in by_collection(claimed):
                known = {record.id: record.text for record in self._store.get(collection, [one.id for one in requests])}
                self._store.upsert(records_of([one for one in requests if known.get(one.id) != one.text], None))
        except StoreError as error:
            log.warning("cannot index %d texts by keywords either: %s", len(claimed), error)

    def _find_the_culprit(self, claimed: Sequence[Claimed], error: Exception, model: str) -> None:
        if len(claimed) > 1:
            half = len(claimed) // 2
            self._process(claimed[:half], model)
            self._process(claimed[half:], model)
            return
        alone = claimed[0]
        told = f"{getattr(error, 'code', type(error).__name__)}: {error}"
        if alone.attempts + 1 >= self._options.attempts:
            log.warning("giving up on %s/%s: %s", alone.request.collection, alone.request.id, told)
            self._outbox.bury(alone, told)
        else:
            seconds = self._options.backoff * 2**alone.attempts
            self._outbox.put_off([alone], told, seconds=seconds, counts=True)

    def _warn_when_full(self) -> None:
        waiting = self.pending
        if waiting >= self._options.full and not self._warned_full:
            log.warning("embedding buffer is behind: %d requests wait", waiting)
        self._warned_full = waiting >= self._options.full
