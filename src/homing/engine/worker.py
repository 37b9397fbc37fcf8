"""The one background embedder: claims what waits, whoever wrote it, and gives it vectors."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from homing.database import Database
from homing.engine.batch import Embedding, Retries
from homing.engine.source import ModelsInUse
from homing.engine.wanted import Wanted
from homing.engine.work import Item, Work
from homing.errors import EmbeddingError, HomingError, InvalidArgument, StoreClosed
from homing.stores.store import Store

log = logging.getLogger(__name__)

POLL = 0.25
"""Seconds between two looks at what others make true, and before the first of an idle worker for what they wrote."""
HELD_POLL = 0.02
"""Seconds between two looks at what others are at."""
FOLLOW = 60.0
"""Seconds after which it asks every collection for its model even if the default is still the same: that takes a
request or two for each collection in object storage."""
LOOK = 5.0
"""Seconds after which it looks again even if nothing was written."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How texts are taken: `batch_size` of them at most, about `batch_bytes` of text, by so many `threads`.

    `full` is how many waiting texts are logged as a warning. With `collections` only their texts are taken; without
    `embeds` none are, and whoever waits for vectors waits for other processes.
    """

    batch_size: int = 64
    batch_bytes: int = 256 * 1024
    threads: int = 1
    full: int = 10_000
    retries: Retries = field(default_factory=Retries)
    embeds: bool = True
    collections: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if min(self.batch_size, self.batch_bytes, self.threads, self.retries.attempts) < 1:
            raise InvalidArgument("batch_size, batch_bytes, threads and attempts are at least 1")
        if self.retries.backoff <= 0 or self.retries.max_backoff < self.retries.backoff:
            raise InvalidArgument("waits are positive: 0 < backoff <= max_backoff")


class Worker:
    """Embeds in threads of its own once started, and in the caller's by `flush`. Safe beside any number of others.

    It also follows the default model: collections that another one serves are embedded again, behind what people write.
    `others` are workers of users without threads of their own, who have something to do: its threads do that as well.
    """

    def __init__(
        self,
        database: Database,
        store: Store,
        models: ModelsInUse,
        work: Work,
        wanted: Wanted,
        options: WorkerOptions,
        *,
        others: Callable[[], Sequence[Worker]] = tuple,
    ) -> None:
        self._database = database
        self._store = store
        self._models = models
        self._work = work
        self._wanted = wanted
        self._options = options
        self._others = others
        self._embedding = Embedding(store, models, work, options.retries)
        self._wake = threading.Condition()
        self._claiming = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._at_work = 0
        self._notified = 0
        self._followed = ("", 0.0)
        self._left: list[Item] = []
        self._warned_full = False

    @property
    def running(self) -> bool:
        """Whether it was started."""
        return bool(self._threads)

    @property
    def at_work(self) -> bool:
        """Whether a batch is being embedded in this process."""
        with self._wake:
            return self._at_work > 0

    @property
    def _embeds(self) -> bool:
        return self._options.embeds and self._models.embeds

    def notify(self) -> None:
        """Something was written."""
        with self._wake:
            self._notified += 1
            self._wake.notify_all()

    def wait(self, done: Callable[[], bool], timeout: float) -> bool:
        """Wait while workers, here or elsewhere, make something true; whether it came true in time."""
        deadline = time.monotonic() + timeout
        with self._wake:
            while not (true := done()) and (left := _left(deadline)):
                self._wake.wait(min(left, POLL))
        return true

    def start(self) -> None:
        """Start the threads. Starting twice is fine."""
        with self._wake:
            if self._threads or not self._embeds:
                return
            # Each start has its own signal: a thread that outlived the timeout of an earlier stop still ends.
            self._stopping = threading.Event()
            self._threads = [
                threading.Thread(target=self._loop, args=(self._stopping,), name=f"homing-worker-{number}", daemon=True)
                for number in range(self._options.threads)
            ]
            for thread in self._threads:
                thread.start()

    def flush(self, timeout: float | None = None) -> bool:
        """Embed everything that waits now, in the calling thread beside the others; whether nothing is left.

        What others are at, here or in another process, is waited for.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._work.flush()
        for _ in range(3):
            self._repeat(self.step, deadline)
            if not self._work.waiting():
                return True
            # Another worker may have put back, since the last look, a text that changed while it was at it.
        return False

    def step(self, stopping: threading.Event | None = None) -> bool:
        """Do some of what waits in the calling thread, or wait a moment for others who do; whether there was any."""
        return self.run_batch(early=True, stopping=stopping) or self.follow() or self._wait_for_others()

    def _wait_for_others(self) -> bool:
        """Wait a moment for what others are at; whether they are at anything."""
        if not self._work.held():
            return False
        with self._wake:
            self._wake.wait(HELD_POLL)
        return True

    def wait_idle(self) -> None:
        """Wait until no batch is under way in this process."""
        with self._wake:
            self._wake.wait_for(lambda: not self._at_work)

    def stop(self, timeout: float | None = None, *, drain: bool = True) -> int:
        """Embed what this process asked for, then stop; returns how many texts still wait, of whomever.

        What is left is kept for the next worker. A batch that is under way is waited for, within the timeout.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            if drain:
                self._repeat(lambda over: self.run_batch(early=True, mine=True, stopping=over), deadline)
        finally:
            self._stopping.set()
            self.notify()
            for thread in self._threads:
                thread.join(None if deadline is None else _left(deadline))
            self._threads = []
        if self.at_work:
            # Its lease would keep the texts from whoever opens this next in the same process.
            with self._claiming:
                self._work.release_all()
        left = self._work.waiting()
        if left and drain and self._work.waiting(mine=True):
            log.warning("closing with %d texts that wait for their vectors; the next process carries on", left)
        return left

    def _repeat(self, step: Callable[[threading.Event], bool], deadline: float | None) -> None:
        """Repeat a step until it finds nothing to do or the time is over; one may be under way even then.

        In a thread of its own, so that a model that does not answer takes nobody's time but its own.
        """
        over, failures = threading.Event(), list[HomingError]()

        def work() -> None:
            try:
                while not over.is_set() and step(over):
                    continue
            except HomingError as error:
                failures.append(error)

        thread = threading.Thread(target=work, name="homing-worker-flush", daemon=True)
        thread.start()
        thread.join(None if deadline is None else _left(deadline))
        over.set()
        if failures:
            raise failures[0]

    def run_batch(
        self,
        size: int | None = None,
        *,
        early: bool = False,
        mine: bool = False,
        stopping: threading.Event | None = None,
    ) -> bool:
        """Embed one batch of what is due in the calling thread, unless `stopping`; whether there was anything."""
        if not self._embeds:
            return False
        with self._wake:
            self._at_work += 1
        items: list[Item] = []
        try:
            self._release()
            count = size or self._options.batch_size
            with self._claiming:
                if stopping is None or not stopping.is_set():
                    items = self._work.claim(
                        count, self._options.batch_bytes, early=early, mine=mine, collections=self._options.collections
                    )
            if items:
                self._embedding.run(items)
                if any(one.model for one in items):
                    self._settle()
            return bool(items)
        except HomingError:
            # Whatever could not even be postponed, because the database is locked, is given back by and by.
            with self._wake:
                self._left += items
            raise
        finally:
            with self._wake:
                self._at_work -= 1
                self._wake.notify_all()

    def _release(self) -> None:
        with self._wake:
            left, self._left = self._left, []
        if left:
            try:
                self._work.release(left)
            except HomingError:
                with self._wake:
                    self._left += left
                raise

    def _loop(self, stopping: threading.Event) -> None:
        seen, looked, pause = -1, 0.0, POLL
        while not stopping.is_set():
            worked, due, notified = False, None, self._notified
            try:
                version, now, due = self._database.version(), time.monotonic(), self._work.next_due(everybody=True)
                # Looking costs microseconds while nothing is written; a model that is back shows in nothing else.
                if version != seen or now - looked > LOOK or due == 0.0:
                    if self._work.has(1):
                        self._warn_when_full()
                        many = self._work.has(self._options.batch_size, resting=True)
                        worked = self.run_batch(early=many, stopping=stopping)
                    worked = worked or (self._may_follow(now) and self.follow())
                    for other in self._others():
                        # One batch of each, in turn: nobody waits for another's import.
                        worked = other.take_turn(stopping) or worked
                    looked = now
                seen = version
                # The longer nothing comes, the less often it looks, where somebody would tell.
                pause = POLL if worked else min(2 * pause, self._database.listen(self.notify))
            except StoreClosed:
                # Whoever opened the database is done with it.
                return
            except HomingError as error:
                # One that outlived its stop may find the database closed.
                if not stopping.is_set():
                    log.warning("the background worker carries on after: %s", error)
            except Exception:
                log.exception("the background worker carries on after an unexpected failure")
            if not worked:
                with self._wake:
                    told = self._wake.wait_for(
                        lambda notified=notified: stopping.is_set() or self._notified != notified,  # type: ignore[misc]
                        min(pause, due or pause),
                    )
                pause = POLL if told else pause

    def take_turn(self, stopping: threading.Event) -> bool:
        """Do one batch, or what a change of model takes, in the thread of another worker; whether there was anything.

        A failure is logged: it is no reason for others to wait.
        """
        try:
            return self.run_batch(stopping=stopping) or self.follow()
        except StoreClosed:
            raise
        except HomingError as error:
            if not stopping.is_set():
                log.warning("the background worker goes on with other users after: %s", error)
            return False

    def _may_follow(self, now: float) -> bool:
        """Whether the default model is another one, a change is under way, or nobody has looked for long."""
        try:
            default = self._models.provider("").id
        except EmbeddingError:
            return False
        before, since = self._followed
        if default == before and now - since < FOLLOW and not self._wanted.all():
            return False
        self._followed = (default, now)
        return True

    def follow(self) -> bool:
        """Have every collection change to the default model, and list what that takes; whether there was anything."""
        try:
            served = {info.name: info.model for info in self._store.collections() if info.embedded}
            default = self._models.provider("").id if served else ""
        except EmbeddingError:
            return False
        wished = self._wanted.all()
        models = served | {wish.collection: wish.model for wish in wished}
        changing = [collection for collection in served if models[collection] != default]
        for collection in changing:
            self._wanted.want(collection, default)
        if changing:
            wished = self._wanted.all()
        moved = False
        for wish in wished:
            if not wish.listed:
                self._wanted.list_missing(wish)
                moved = True
        return (bool(wished) and self._settle()) or moved

    def _settle(self) -> bool:
        served = [wish for wish in self._wanted.all() if wish.listed and self._wanted.settle(wish)]
        return bool(served)

    def _warn_when_full(self) -> None:
        full = self._work.has(self._options.full)
        if full and not self._warned_full:
            log.warning("embedding is behind: %d texts wait for their vectors", self._work.waiting())
        self._warned_full = full


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
