"""One writer at a time: a lock among the threads of this process, then one on a file among processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from homing.errors import StoreBusy, StoreReadOnly

if TYPE_CHECKING:
    from filelock import BaseFileLock

WAIT = 120.0
"""Seconds that a writer waits for another one: as long as a large table takes to be tidied up."""


class WriteLock:
    """Held while something is written. A process that dies lets go of it."""

    def __init__(self, path: Path, *, wait: float = WAIT) -> None:
        self.path = path
        self.wait = wait
        self._threads = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock and hold it."""
        started = time.monotonic()
        if not self._threads.acquire(timeout=self.wait):
            raise self._busy()
        try:
            lock = self._acquired(max(0.0, self.wait - (time.monotonic() - started)))
            try:
                yield
            finally:
                lock.release()
        finally:
            self._threads.release()

    def _acquired(self, seconds: float) -> BaseFileLock:
        # Who only reads never loads it.
        from filelock import FileLock, Timeout

        lock = FileLock(self.path)
        try:
            lock.acquire(timeout=seconds, poll_interval=0.005)
        except Timeout as error:
            raise self._busy() from error
        except OSError as error:
            raise StoreReadOnly(
                f"the lock {self.path} cannot be written: {error.strerror}; make the folder writable",
                details={"path": str(self.path)},
            ) from error
        return lock

    def _busy(self) -> StoreBusy:
        return StoreBusy(
            f"another process has been writing for {self.wait:g} s (lock {self.path}); try again, or end that process",
            details={"path": str(self.path)},
        )
