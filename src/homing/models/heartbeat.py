"""Tells other processes, every second, that a switch is being worked on and how far it has come."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType
from typing import Self

from homing.errors import HomingError
from homing.models.switch_log import SIGN_OF_LIFE, SwitchLog

logger = logging.getLogger(__name__)


class Heartbeat:
    """Counts what was done, and writes it down from a thread of its own: a batch may take longer than the pulse."""

    def __init__(self, log: SwitchLog, target: str, total: int, done: int) -> None:
        self.total = total
        self.done = done
        self._log = log
        self._target = target
        self._before = done
        self._started = time.monotonic()
        self._error = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="homing-switch", daemon=True)

    def add(self, count: int) -> None:
        """So many more are done. What is written meanwhile comes on top of the total."""
        self.done += count
        self.total = max(self.total, self.done)

    def failed(self, error: str) -> None:
        """It stops with this error."""
        self._error = error

    def __enter__(self) -> Self:
        self._write()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._write()
        self._log.end(self._error)

    def _beat(self) -> None:
        while not self._ended.wait(SIGN_OF_LIFE):
            try:
                self._write()
            except HomingError as error:
                # Another writer may hold the file for long; a late sign of life is no reason to stop.
                logger.debug("no sign of life could be written: %s", error)

    def _write(self) -> None:
        elapsed = time.monotonic() - self._started
        rate = (self.done - self._before) / elapsed if elapsed > 0 else 0.0
        self._log.progress(self._target, self.done, self.total, rate)
