"""How requests are worked on: how many at once, in which order, and each to its one answer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from homing.channels import Envelope, Work
from homing.errors import InvalidArgument
from homing.ipc.rpc import Id, notification, result
from homing.operations.operation import Pace

PROGRESS = "$/progress"
PROGRESS_EVERY = 0.1
"""Seconds between two notifications of one request; the last one always goes out."""

Job = Callable[[], None]
Send = Callable[[Mapping[str, Any]], None]
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """A message may have `message_bytes`; at most `pending` requests of `pending_bytes` together are under way.

    `workers` requests are worked on at the same time. At the end, those under way have `grace` seconds to finish.
    """

    message_bytes: int = 64 * MEBIBYTE
    pending: int = 256
    pending_bytes: int = 256 * MEBIBYTE
    workers: int = 8
    grace: float = 10.0

    def __post_init__(self) -> None:
        if min(self.message_bytes, self.pending, self.pending_bytes, self.workers) < 1 or self.grace < 0:
            raise InvalidArgument("every limit is at least 1, and grace is not negative")


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


class Task:
    """Answered exactly once, by whoever comes first: the work, or its cancellation."""

    def __init__(self, request_id: Id, channel: str, size: int, *, pace: Pace, send: Send) -> None:
        self.id = request_id
        self.channel = channel
        self.size = size
        self.pace = pace
        self._send = send
        self._cancelled = threading.Event()
        self._answered = False
        self._told_at = 0.0
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether it need not go on."""
        return self._cancelled.is_set()

    @property
    def work(self) -> Work:
        """The wires between the client and whoever does the work."""
        return Work(self._progress, self._cancelled.is_set)

    def cancel(self, answer: Envelope) -> None:
        """Answer now, and let the work know that nobody waits for it."""
        self._cancelled.set()
        self.settle(answer)

    def settle(self, answer: Envelope) -> None:
        """Send the answer, where none was sent yet."""
        with self._lock:
            if self._answered:
                return
            self._answered = True
            # Under the lock: no progress may follow the answer.
            self._send(result(self.id, answer))

    def _progress(self, done: int, total: int) -> None:
        with self._lock:
            now = time.monotonic()
            if self._answered or (done < total and now - self._told_at < PROGRESS_EVERY):
                return
            self._told_at = now
            self._send(notification(PROGRESS, {"id": self.id, "done": done, "total": total}))
