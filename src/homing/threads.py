"""Threads that are there while they are needed, and gone a few seconds later."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

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
