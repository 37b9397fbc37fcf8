"""Runs independent pieces of one answer side by side, each with its own outcome, under one deadline.

Their threads are there while they are needed, and gone a few seconds later.
"""

from __future__ import annotations

import atexit
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar

from homing.errors import HomingError, Timeout

P = ParamSpec("P")
T = TypeVar("T")
Work = tuple[Future[Any], Callable[[], Any]]

IDLE = 5.0
"""Seconds after which a thread that nobody needs ends."""
AT_EXIT = 10.0
"""Seconds that the end of the process waits for what is under way."""


class ThreadPool(Executor):
    """Runs calls in at most `most` threads. An idle one is used again before another is made, and ends after `idle`
    seconds; the process waits for none that is idle, and for no call that hangs.
    """

    def __init__(self, name: str, most: int, *, idle: float = IDLE) -> None:
        self._name, self._most, self._seconds = name, most, idle
        self._lock = threading.Lock()
        # The last to become idle is the first to be used, so that those that are too many end.
        self._idle: list[SimpleQueue[Work]] = []
        self._waiting: deque[Work] = deque()
        self._unfinished: set[Future[Any]] = set()
        self._count = 0
        atexit.register(self._finish)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """The answer of a call, when it is there."""
        future: Future[T] = Future()
        work: Work = (future, lambda: function(*args, **kwargs))
        with self._lock:
            self._unfinished.add(future)
            if self._idle:
                self._idle.pop().put(work)
            elif self._count < self._most:
                threading.Thread(target=self._run, args=([work],), name=self._name, daemon=True).start()
                self._count += 1
            else:
                self._waiting.append(work)
        return future

    def _run(self, given: list[Work]) -> None:
        inbox: SimpleQueue[Work] = SimpleQueue()
        while given:
            # Held by nothing but the call: an idle thread keeps no answer alive.
            self._call(*given.pop())
            given += self._next(inbox)

    def _call(self, future: Future[Any], function: Callable[[], Any]) -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
        with self._lock:
            self._unfinished.discard(future)

    def _next(self, inbox: SimpleQueue[Work]) -> list[Work]:
        """What to do next; nothing for a thread that nobody needed."""
        with self._lock:
            if self._waiting:
                return [self._waiting.popleft()]
            self._idle.append(inbox)
        try:
            return [inbox.get(timeout=self._seconds)]
        except Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    self._count -= 1
                    return []
            return [inbox.get()]

    def _finish(self) -> None:
        with self._lock:
            unfinished = list(self._unfinished)
        wait(unfinished, timeout=AT_EXIT)


# High, because a leg may itself run legs (several collections, two legs each): a small pool could wait for itself.
_POOL = ThreadPool("homing-leg", 512)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of one leg: a value, or the error it ended with; and how long that took."""

    value: T | None
    error: Exception | None
    milliseconds: float

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.error is None

    @property
    def code(self) -> str:
        """The stable code of the error; empty where there is none."""
        if self.error is None:
            return ""
        return self.error.code if isinstance(self.error, HomingError) else "INTERNAL_ERROR"


def run_legs(legs: Mapping[str, Callable[[], T]], *, deadline: float, waits: bool = True) -> dict[str, Outcome[T]]:
    """Call every leg in a thread of its own and report each outcome by name.

    Each sees the caller's context variables. Never raises what a leg raises. A leg that has not answered after
    `deadline` seconds is left behind with a Timeout; its thread ends by itself when the leg does. Legs that wait for
    nobody but this process (`waits` is false) are called one after the other, here: threads would only take turns.
    """
    if not waits:
        return {name: contextvars.copy_context().run(_timed, leg) for name, leg in legs.items()}
    started = time.perf_counter()
    futures = {name: _POOL.submit(contextvars.copy_context().run, _timed, leg) for name, leg in legs.items()}
    wait(futures.values(), timeout=deadline)
    return {name: _outcome(name, future, deadline, started) for name, future in futures.items()}


def run_leg(name: str, leg: Callable[[], T], *, deadline: float, waits: bool = True) -> Outcome[T]:
    """The outcome of a single leg, under the same rules."""
    return run_legs({name: leg}, deadline=deadline, waits=waits)[name]


def _timed(leg: Callable[[], T]) -> Outcome[T]:
    started = time.perf_counter()
    try:
        value, error = leg(), None
    except Exception as failure:
        value, error = None, failure
    return Outcome(value, error, (time.perf_counter() - started) * 1000)


def _outcome(name: str, future: Future[Outcome[T]], deadline: float, started: float) -> Outcome[T]:
    if future.done():
        return future.result()
    future.cancel()
    late = Timeout(f"the {name} leg gave no answer within {deadline:g} s")
    return Outcome(None, late, (time.perf_counter() - started) * 1000)
