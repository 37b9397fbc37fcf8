"""Which of the processes that serve a folder embeds what waits in it: one, and when it ends, another."""

from __future__ import annotations

import logging
import threading

from filelock import FileLock, Timeout

from homing.app import Homing

log = logging.getLogger(__name__)

FILE = ".embedding.lock"
LOOK = 1.0
"""Seconds between two looks at whether the process whose turn it was has ended."""


class EmbeddingTurns:
    """The folders that this process serves, and whether it is the one that embeds there.

    A turn is a lock on a file in the folder, which a process that dies lets go of.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[Homing, FileLock] = {}
        self._waiting: dict[Homing, FileLock] = {}
        self._closed = threading.Event()
        self._looking: threading.Thread | None = None

    def enter(self, app: Homing) -> None:
        """Embed in the background in this folder as soon as nobody else does."""
        with self._lock:
            if app in self._held or app in self._waiting:
                return
            app.engine.background = False
            self._waiting[app] = FileLock(app.settings.data / FILE, mode=0o600, thread_local=False)
            self._take()
            if self._waiting and self._looking is None:
                self._looking = threading.Thread(target=self._look, name="homing-embedding-turn", daemon=True)
                self._looking.start()

    def leave(self, app: Homing) -> None:
        """Let others embed there, once this process has closed the folder."""
        with self._lock:
            self._waiting.pop(app, None)
            if (lock := self._held.pop(app, None)) is not None:
                lock.release()

    def close(self) -> None:
        """Leave every folder."""
        self._closed.set()
        for app in [*self._held, *self._waiting]:
            self.leave(app)

    def _look(self) -> None:
        while not self._closed.wait(LOOK):
            with self._lock:
                self._take()

    def _take(self) -> None:
        for app, lock in list(self._waiting.items()):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            except OSError as error:
                # Twice is better than never.
                log.warning("cannot tell whether another process embeds in %s: %s", app.settings.data, error)
            self._held[app] = self._waiting.pop(app)
            app.engine.background = True
            app.engine.start()
