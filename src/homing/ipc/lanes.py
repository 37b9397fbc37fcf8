"""Works on several things at once, except on those that must keep their order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from homing.operations.operation import Pace

Job = Callable[[], None]


class Lanes:
    """Threads for jobs of every pace, so that neither long ones nor those that wait keep a quick one from its turn.

    `workers` quick jobs run at once, `waiting` jobs wait at once, long jobs run one by one. A job raises nothing.
    """

    def __init__(self, workers: int, waiting: int) -> None:
        self._pools: dict[Pace, ThreadPoolExecutor] = {
            "quick": ThreadPoolExecutor(workers, thread_name_prefix="ipc"),
            "waiting": ThreadPoolExecutor(waiting, thread_name_prefix="ipc-waiting"),
            "long": ThreadPoolExecutor(1, thread_name_prefix="ipc-long"),
        }
        self._behind: dict[str, deque[Job]] = {}
        self._lock = threading.Lock()

    def submit(self, job: Job, pace: Pace = "quick") -> None:
        """Have it done beside others; returns at once."""
        self._pools[pace].submit(job)

    def submit_in_turn(self, job: Job, lane: str) -> None:
        """Have it done when those of its lane that were submitted before are done; returns at once."""
        with self._lock:
            if lane in self._behind:
                self._behind[lane].append(job)
                return
            self._behind[lane] = deque()
        # A turn may have to wait for the database: that keeps no quick job from its thread.
        self.submit(lambda: self._run(lane, job), "waiting")

    def close(self) -> None:
        """Take no more; what was submitted is still done."""
        for pool in self._pools.values():
            pool.shutdown(wait=False)

    def _run(self, lane: str, job: Job) -> None:
        while True:
            job()
            with self._lock:
                if not self._behind[lane]:
                    del self._behind[lane]
                    return
                job = self._behind[lane].popleft()
