"""Works on several things at once, except on those that must keep their order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

Job = Callable[[], None]


class Lanes:
    """A pool of threads. Jobs of one lane run one after another as they were submitted; others side by side.

    Long jobs have a thread of their own, so that no number of them keeps a short one waiting. A job raises nothing.
    """

    def __init__(self, workers: int) -> None:
        self._short = ThreadPoolExecutor(workers, thread_name_prefix="ipc")
        self._long = ThreadPoolExecutor(1, thread_name_prefix="ipc-long")
        self._waiting: dict[str, deque[Job]] = {}
        self._lock = threading.Lock()

    def submit(self, job: Job, *, lane: str | None = None, long: bool = False) -> None:
        """Have it done; returns at once."""
        if long:
            self._long.submit(job)
        elif lane is None:
            self._short.submit(job)
        else:
            with self._lock:
                if lane in self._waiting:
                    self._waiting[lane].append(job)
                    return
                self._waiting[lane] = deque()
            self._short.submit(self._run, lane, job)

    def close(self) -> None:
        """Take no more; what was submitted is still done."""
        self._short.shutdown(wait=False)
        self._long.shutdown(wait=False)

    def _run(self, lane: str, job: Job) -> None:
        while True:
            job()
            with self._lock:
                if not self._waiting[lane]:
                    del self._waiting[lane]
                    return
                job = self._waiting[lane].popleft()
