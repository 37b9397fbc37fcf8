"""Long work that goes on while its caller does something else: with progress, an end, and a way to stop it."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from homing.errors import Canceled, Conflict, HomingError, Interrupted, NotFound, Overloaded, StoreError
from homing.server.job_log import JobLog, LoggedJob, Order

log = logging.getLogger(__name__)

State = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED: frozenset[State] = frozenset({"done", "failed", "cancelled"})
EVENTS_KEPT = 200
"""Events of a job that a stream which was cut can ask for again."""
LOGGED_EVERY = 1.0
"""Seconds between two times that the progress of a job is written down."""
WATCH_EVERY = 0.5
"""Seconds between two looks at whether a job is to stop."""
PROGRESS_EVERY = 0.1
"""Seconds between two events about progress: people do not read faster."""


@dataclass(frozen=True, slots=True)
class Report:
    """Tells how much of how much is done. Raises where the job was cancelled, so that the work ends there."""

    job: Job

    def __call__(self, done: int, total: int) -> None:
        self.job.progress(done, total)

    def canceled(self) -> bool:
        """Whether it was, for work that takes long between two signs of progress."""
        return self.job.canceled


Work = Callable[[Report], Mapping[str, Any]]
"""What a job does; returns plain data."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it was at one moment. `error` has the code and the message of what it failed with."""

    id: str
    kind: str
    subject: str
    user: str
    state: State = "waiting"
    done: int = 0
    total: int = 0
    result: Mapping[str, Any] | None = None
    error: Mapping[str, str] | None = None
    created: float = field(default_factory=time.time)
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A job as it was after something happened to it; numbers grow by one."""

    number: int
    view: JobView


class Job:
    """One piece of work. Safe from several threads."""

    def __init__(self, view: JobView, *, shared: bool) -> None:
        self.shared = shared
        self._lock = threading.Lock()
        self._view = view
        self._events: deque[Event] = deque([Event(1, self._view)], maxlen=EVENTS_KEPT)
        self._listeners: list[Callable[[], None]] = []
        self._cancelled = threading.Event()
        self._told_at = 0.0

    @property
    def view(self) -> JobView:
        """How it stands."""
        return self._view

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self._view.state in ENDED

    def cancel(self) -> None:
        """Ask it to stop: at once where it waits, at its next sign of progress where it runs."""
        self._cancelled.set()
        self._change(only_from="waiting", state="cancelled", ended=time.time())

    def events_after(self, number: int) -> list[Event]:
        """What happened since an event; where that is long gone, what is still remembered."""
        with self._lock:
            return [event for event in self._events if event.number > number]

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have something called after every event; returns what ends that."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return stop

    def run(self, work: Work) -> None:
        """Do the work and remember how it ended. Never raises."""
        if not self._change(only_from="waiting", state="running"):
            return
        try:
            result = work(Report(self))
        except Canceled:
            self._change(state="cancelled", ended=time.time())
        except HomingError as error:
            self._change(state="failed", error={"code": error.code, "message": error.message}, ended=time.time())
        except Exception as error:
            log.exception("job %s (%s) failed unexpectedly", self._view.id, self._view.kind)
            message = f"an unexpected failure ({type(error).__name__}); see the server's log"
            self._change(state="failed", error={"code": "INTERNAL_ERROR", "message": message}, ended=time.time())
        else:
            self._change(state="done", result=result, ended=time.time())

    @property
    def canceled(self) -> bool:
        """Whether it was asked to stop."""
        return self._cancelled.is_set()

    def progress(self, done: int, total: int) -> None:
        """Write down how far it is. Raises Canceled."""
        if self._cancelled.is_set():
            raise Canceled("the job was cancelled")
        now = time.monotonic()
        # The end of a stretch of work, and the beginning of another, are told whenever they come.
        if now - self._told_at >= PROGRESS_EVERY or done == total or total != self._view.total:
            self._told_at = now
            self._change(done=done, total=total)

    def _change(self, *, only_from: State | None = None, **changes: Any) -> bool:
        """Whether it did change: what has ended stays, and nobody gets in between the look and the change."""
        with self._lock:
            if self.ended or only_from not in (None, self._view.state):
                return False
            self._view = replace(self._view, **changes)
            self._events.append(Event(self._events[-1].number + 1, self._view))
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
        return True


class Jobs:
    """The jobs of a server, newest first. The latest `kept` that ended are remembered, and at most `most` wait or run.

    With a `log` they outlive the server: the next one takes up what has an order. The work itself is such that doing it
    again carries on.
    """

    def __init__(self, *, workers: int = 2, kept: int = 100, most: int = 50, log: JobLog | None = None) -> None:
        self._log = log
        self._kept = kept
        self._most = most
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queues: dict[str, deque[tuple[Job, Work]]] = {}
        self._watching: threading.Thread | None = None
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="homing-job")

    def submit(
        self,
        kind: str,
        subject: str,
        work: Work,
        *,
        user: str,
        shared: bool,
        at_once: int | None = None,
        order: Order | None = None,
    ) -> Job:
        """Begin a piece of work. `shared` is work on what all users have; `at_once` is how many of a kind one user may
        have under way, which are then done one after another, so that others have their turn between them; with an
        `order` another server can take it up. Raises Conflict where this very work is under way, Overloaded where too
        much is.
        """
        job = Job(JobView(secrets.token_hex(8), kind, subject, user), shared=shared)
        with self._lock:
            if self._log is None:
                self._check(job, [one.view for one in self._jobs.values() if not one.ended], at_once)
            else:
                # One that ended a moment ago may not be written down as such yet.
                ended_here = {key for key, one in self._jobs.items() if one.ended}

                def check(logged: Sequence[LoggedJob]) -> None:
                    views = [JobView(**one.fields) for one in logged if one.fields["id"] not in ended_here]
                    self._check(job, views, at_once)

                self._log.begin(job.view, shared=shared, order=order, check=check)
            self._begin(job, work, in_turn=at_once is not None)
            ended = [key for key, one in self._jobs.items() if one.ended]
            for key in ended[: max(0, len(ended) - self._kept)]:
                del self._jobs[key]
        return job

    def _check(self, job: Job, under_way: Sequence[JobView], at_once: int | None) -> None:
        kind, subject, user = job.view.kind, job.view.subject, job.view.user
        for one in under_way:
            if (one.kind, one.subject) == (kind, subject) and (job.shared or one.user == user):
                raise Conflict(f"this is being done already; follow it at /jobs/{one.id}", details={"job": one.id})
        if len(under_way) >= self._most:
            raise Overloaded(f"{len(under_way)} jobs are waiting already; come back later", retry_after=10)
        alike = sum((one.kind, one.user) == (kind, user) for one in under_way)
        if at_once is not None and alike >= at_once:
            raise Overloaded(f"{alike} of your {kind}s are waiting already; come back later", retry_after=10)

    def resume(self, work_of: Callable[[Order, str], Work]) -> int:
        """Take up what earlier servers left; returns how many jobs. `work_of` makes the work of an order of a user."""
        if self._log is None:
            return 0
        with self._lock:
            for one in self._log.ended(self._kept):
                self._jobs[one.fields["id"]] = Job(JobView(**one.fields), shared=one.shared)
            left = self._log.take_over()
            for one in left:
                view = replace(JobView(**one.fields), state="waiting")
                job = Job(view, shared=one.shared)
                self._begin(job, _lost if one.order is None else work_of(one.order, view.user))
        return len(left)

    def _begin(self, job: Job, work: Work, *, in_turn: bool = False) -> None:
        self._jobs[job.view.id] = job
        if self._log is not None:
            job.listen(_Logged(job, self._log).happened)
            if self._watching is None:
                self._watching = threading.Thread(target=self._watch, name="homing-job-watch", daemon=True)
                self._watching.start()
        if not in_turn:
            self._pool.submit(job.run, work)
            return
        queue = self._queues.setdefault(job.view.user, deque())
        queue.append((job, work))
        if len(queue) == 1:
            self._pool.submit(self._run_next, job.view.user)

    def _run_next(self, user: str) -> None:
        job, work = self._queues[user][0]
        job.run(work)
        with self._lock:
            self._queues[user].popleft()
            if not self._queues[user]:
                del self._queues[user]
                return
        # The pool is closed when the server ends; what waits was cancelled then.
        with suppress(RuntimeError):
            self._pool.submit(self._run_next, user)

    def unknown(self, job_id: str) -> NotFound:
        """The answer to who asks for a job that is not there, not there any more, or not theirs."""
        return NotFound(
            f"there is no job {job_id!r}: the latest {self._kept} that ended are remembered, and GET /jobs lists them. "
            "Begin the work again to be sure: what was done is not done twice",
            details={"job": job_id},
        )

    def all(self) -> list[Job]:
        """Every job that is remembered, the newest first; with a log, those of other servers as well."""
        with self._lock:
            own = list(reversed(self._jobs.values()))
        if self._log is None:
            return own
        ours = {one.view.id for one in own}
        others = [_elsewhere(one) for one in self._log.all(self._kept) if one.fields["id"] not in ours]
        return sorted([*own, *others], key=lambda one: one.view.created, reverse=True)

    def get(self, job_id: str) -> Job:
        """The job with that id; one that another server is at as it is now, and `own` tells which that is."""
        with self._lock:
            found = self._jobs.get(job_id)
        if found is None and self._log is not None and (logged := self._log.find(job_id)) is not None:
            return _elsewhere(logged)
        if found is None:
            raise self.unknown(job_id)
        return found

    def own(self, job: Job) -> bool:
        """Whether this server is at a job, or was."""
        with self._lock:
            return job.view.id in self._jobs

    def cancel(self, job: Job) -> None:
        """Ask a job to stop, whichever server is at it."""
        if self.own(job) or self._log is None:
            job.cancel()
        else:
            self._log.cancel(job.view.id)

    def _watch(self) -> None:
        """Stop those of our jobs that were asked to stop elsewhere, while there are any."""
        assert self._log is not None
        while True:
            time.sleep(WATCH_EVERY)
            with self._lock:
                if all(one.ended for one in self._jobs.values()):
                    self._watching = None
                    return
            try:
                for name in self._log.cancelled():
                    self._jobs[name].cancel()
            except StoreError as error:
                log.warning("cannot see whether a job is to stop: %s", error)

    def close(self) -> None:
        """Stop what is under way and wait for that; with a log, the next server goes on with it."""
        if self._log is not None:
            try:
                self._log.release()
            except StoreError as error:
                log.warning("jobs that are not done wait until their lease is over: %s", error)
        for job in list(self._jobs.values()):
            job.cancel()
        self._pool.shutdown(cancel_futures=True)


def _elsewhere(logged: LoggedJob) -> Job:
    return Job(JobView(**logged.fields), shared=logged.shared)


class _Logged:
    """Writes down what becomes of a job: every change of its state, and its progress now and then."""

    def __init__(self, job: Job, log: JobLog) -> None:
        self._job = job
        self._log = log
        self._state: State = job.view.state
        self._next = 0.0

    def happened(self) -> None:
        """Something did."""
        view, now = self._job.view, time.monotonic()
        if view.state == self._state and now < self._next:
            return
        self._state, self._next = view.state, now + LOGGED_EVERY
        try:
            self._log.update(view)
        except StoreError as error:
            # The work goes on, and what it does is kept; only how far it came is not.
            log.warning("the progress of job %s is not written down: %s", view.id, error)


def _lost(report: Report) -> Mapping[str, Any]:
    raise Interrupted("the server ended before this was done, and what was sent is gone with it; send it again")
