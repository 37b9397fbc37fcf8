"""One request on its way to its one answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from homing.channels import Envelope, Work
from homing.ipc.rpc import Id, notification, result
from homing.operations.operation import Pace

PROGRESS = "$/progress"
PROGRESS_EVERY = 0.1
"""Seconds between two notifications of one request; the last one always goes out."""

Send = Callable[[Mapping[str, Any]], None]


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
