"""Long work that goes on while its caller does something else: with progress, an end, and a way to stop it.

Every server on one database knows the jobs of all of them; where one ends, another goes on with what it was at.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from homing.errors import Conflict, HomingError, Interrupted, NotFound, Overloaded, StoreError
from homing.server.job import Job, JobView, Report, State, Work
from homing.server.job_log import LEASE, Busy, JobLog, Order

logger = logging.getLogger(__name__)

LOGGED_EVERY = 1.0
"""Seconds between two times that the progress of a job is written down."""
WATCH = 1.0
"""Seconds between two looks at the jobs of other servers: whether one was abandoned, cancelled here, or has moved."""


class Jobs:
    """The jobs of a server, newest first. The latest `kept` that ended are remembered, and at most `most` wait or run.

    They outlive the server, and are those of all servers that share the `log`: another one takes up what has an order.
    The work itself is such that doing it again carries on.
    """

    def __init__(self, log: JobLog, *, workers: int = 2, kept: int = 100, most: int = 50) -> None:
        self._log = log
        self._kept = kept
        self._most = most
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queues: dict[str, deque[tuple[Job, Work]]] = {}
        self._looking = threading.Lock()
        self._closing = threading.Event()
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
            ended = [key for key, one in self._jobs.items() if one.ended]
            check = partial(self._check, job.view, at_once)
            if other := self._log.begin(job.view, shared=shared, order=order, ended=ended, check=check):
                raise Conflict(f"this is being done already; follow it at /jobs/{other}", details={"job": other})
            self._begin(job, work, in_turn=at_once is not None)
            for key in ended[: max(0, len(ended) - self._kept)]:
                del self._jobs[key]
        return job

    def _check(self, wanted: JobView, at_once: int | None, busy: Sequence[Busy]) -> None:
        """Refuse where too much is under way, on whichever server."""
        if len(busy) >= self._most:
            raise Overloaded(f"{len(busy)} jobs are waiting already; come back later", retry_after=10)
        alike = sum((one.kind, one.user) == (wanted.kind, wanted.user) for one in busy)
        if at_once is not None and alike >= at_once:
            raise Overloaded(f"{alike} of your {wanted.kind}s are waiting already; come back later", retry_after=10)

    def resume(self, work_of: Callable[[Order, str], Work]) -> int:
        """Take up what other servers left, now and from now on; returns how many jobs.

        `work_of` makes the work of an order of a user.
        """
        self._log.forget(self._kept)
        self._look(ended=self._kept)
        taken = self._take_over(work_of)
        self._watching = threading.Thread(target=self._watch, args=(work_of,), name="homing-jobs", daemon=True)
        self._watching.start()
        return taken

    def _watch(self, work_of: Callable[[Order, str], Work]) -> None:
        renewed = time.monotonic()
        while not self._closing.wait(WATCH):
            try:
                if time.monotonic() - renewed > LEASE / 10:
                    self._log.renew()
                    renewed = time.monotonic()
                self._look()
                self._take_over(work_of)
            except HomingError as error:
                logger.warning("jobs of other servers are not looked at: %s", error)

    def _look(self, ended: int = 0) -> None:
        """Bring what is known of other servers' jobs up to date, and stop what was cancelled, or taken over, there."""
        with self._looking:
            with self._lock:
                followed = [key for key, one in self._jobs.items() if one.elsewhere and not one.ended]
            for head in self._log.heads(ended, followed):
                with self._lock:
                    job = self._jobs.get(head.id)
                if job is not None and not job.elsewhere:
                    if head.ours and job.ended and head.ended is None:
                        # The database was away when it ended.
                        self._log.update(job.view, shared=job.shared)
                    elif head.canceled or not head.ours:
                        job.cancel()
                elif job is None or not job.ended:
                    logged = self._log.read(head)
                    view = JobView(**logged.fields)
                    if job is not None:
                        job.follow(view)
                        continue
                    with self._lock:
                        # One of ours that was begun since is known already.
                        self._jobs.setdefault(head.id, Job(view, shared=head.shared, elsewhere=True))

    def _take_over(self, work_of: Callable[[Order, str], Work]) -> int:
        """Go on with what nobody is at any more; returns how many jobs."""
        left = self._log.take_over()
        with self._lock:
            for one in left:
                view = replace(JobView(**one.fields), state="waiting")
                job = self._jobs.setdefault(view.id, Job(view, shared=one.shared))
                job.follow(view)
                job.elsewhere = False
                if one.canceled:
                    job.cancel()
                self._begin(job, _lost if one.order is None else work_of(one.order, view.user))
        return len(left)

    def _begin(self, job: Job, work: Work, *, in_turn: bool = False) -> None:
        self._jobs[job.view.id] = job
        job.listen(_Logged(job, self._log).happened)
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
        """Every job that is remembered, the newest first."""
        self._look(ended=self._kept)
        with self._lock:
            found = list(reversed(self._jobs.values()))
        return sorted(found, key=lambda job: job.view.created, reverse=True)

    def get(self, job_id: str) -> Job:
        """The job with that id."""
        with self._lock:
            found = self._jobs.get(job_id)
        if found is None or (found.elsewhere and not found.ended):
            self._look(ended=self._kept)
            with self._lock:
                found = self._jobs.get(job_id)
        if found is None:
            raise self.unknown(job_id)
        return found

    def cancel(self, job: Job) -> None:
        """Ask a job to stop, whichever server is at it."""
        if job.elsewhere:
            self._log.cancel(job.view.id)
        else:
            job.cancel()

    def close(self) -> None:
        """Stop what is under way and wait for that; another server goes on with it."""
        self._closing.set()
        if self._watching is not None:
            self._watching.join()
        try:
            self._log.release()
        except StoreError as error:
            logger.warning("jobs that are not done wait until their lease is over: %s", error)
        with self._lock:
            ours = [job for job in self._jobs.values() if not job.elsewhere]
        for job in ours:
            job.cancel()
        self._pool.shutdown(cancel_futures=True)


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
            self._log.update(view, shared=self._job.shared)
        except StoreError as error:
            # The work goes on, and what it does is kept; only how far it came is not.
            logger.warning("the progress of job %s is not written down: %s", view.id, error)


def _lost(report: Report) -> Mapping[str, Any]:
    raise Interrupted("the server ended before this was done, and what was sent is gone with it; send it again")
