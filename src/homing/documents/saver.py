"""Takes texts at once and writes them in the background, of each document only the latest."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from homing.documents.saved import Changes, Saved
from homing.errors import HomingError, StoreError

log = logging.getLogger(__name__)

RETRY = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Seconds to wait, one after the other, before a text that could not be written is tried again."""
MOST = 8
MOST_CHARACTERS = 1_000_000
"""How many texts of a document, and of what length together, may wait; then the latest replaces the one before it."""
WORKERS = 2
TICK = 1.0
"""Seconds between two looks after what has to be tidied up."""

Key = tuple[str, str]
Report = Callable[[], Changes]
Write = Callable[[str, str, str], Report]
"""Writes a text into a document of a project; returns what makes the report of it."""


@dataclass(slots=True)
class _Entry:
    """A text, when it was taken, and everybody who waits to hear of it."""

    text: str
    waiting: list[Saved]
    taken: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class _Job:
    """The texts of a document that were taken and not written yet, the latest last."""

    entries: deque[_Entry] = field(default_factory=deque)
    failures: int = 0
    due: float = 0.0

    def add(self, text: str, saved: Saved) -> None:
        # The first may be under way. Where many wait, the latest takes the place of the one before it.
        crowded = len(self.entries) >= MOST or sum(len(one.text) for one in self.entries) > MOST_CHARACTERS
        if crowded and len(self.entries) > 1:
            self.entries[-1].text = text
            self.entries[-1].waiting.append(saved)
        else:
            self.entries.append(_Entry(text, [saved]))


class Saver:
    """A queue with a few workers. Taking a text costs microseconds, whatever its length.

    Texts of one document are written in order; where they come faster than they can be written, those in between are
    left out and the latest wins. A long document does not keep the others waiting.
    """

    def __init__(self, write: Write, tidy: Callable[[], bool]) -> None:
        self._write = write
        self._tidy = tidy
        self._jobs: dict[Key, _Job] = {}
        self._current: set[Key] = set()
        self._lock = threading.Lock()
        # Two conditions on one lock: a save wakes one worker, and nobody who waits for what becomes of it.
        self._ready = threading.Condition(self._lock)
        self._changed = threading.Condition(self._lock)
        self._threads: list[threading.Thread] = []
        self._closing = False
        # An earlier process may have left something.
        self._untidy = True

    def save(self, project: str, document: str, text: str) -> Saved:
        """Take a text."""
        saved = Saved()
        with self._lock:
            self._jobs.setdefault((project, document), _Job()).add(text, saved)
            self._start()
            self._ready.notify()
        return saved

    def text(self, project: str, document: str) -> str | None:
        """The text that still waits to be written, if one does."""
        with self._lock:
            job = self._jobs.get((project, document))
            return None if job is None else job.entries[-1].text

    def forget(self, project: str, document: str | None = None) -> set[str]:
        """Drop what waits for a document or a project, when nothing of it is being written; the documents it was."""

        def concerns(key: Key) -> bool:
            return key[0] == project and document in (None, key[1])

        with self._changed:
            self._changed.wait_for(lambda: not any(map(concerns, self._current)))
            dropped = [one for one in self._jobs if concerns(one)]
            for key in dropped:
                for entry in self._jobs.pop(key).entries:
                    _tell(entry, Changes)
            self._untidy = True
            self._ready.notify()
            self._changed.notify_all()
            return {name for _, name in dropped}

    def settle(
        self,
        project: str | None = None,
        document: str | None = None,
        *,
        timeout: float | None = None,
        patience: float | None = None,
        again: bool = False,
    ) -> bool:
        """Wait until every text that was taken before is written or has failed once; whether none is left.

        A text is not waited for that was taken more than `patience` seconds ago: searches must not stand still because
        a long document is written. With `again`, those that failed before are tried again first.
        """
        called = time.monotonic()
        if patience is not None:
            timeout = patience

        def concerned() -> list[_Job]:
            return [job for key, job in self._jobs.items() if project in (None, key[0]) and document in (None, key[1])]

        def settled() -> bool:
            oldest = -math.inf if patience is None else time.monotonic() - patience
            return not any(not job.failures and oldest < job.entries[0].taken <= called for job in concerned())

        with self._changed:
            if again:
                for job in concerned():
                    job.failures, job.due = 0, 0.0
                self._ready.notify_all()
            self._changed.wait_for(settled, timeout)
            return not concerned()

    def start(self) -> None:
        """Start the worker. Starting twice is fine."""
        with self._lock:
            self._start()

    def close(self, timeout: float | None) -> bool:
        """Write what waits and stop; whether everything was written."""
        written = self.settle(timeout=timeout, again=True)
        with self._lock:
            self._closing = True
            self._ready.notify_all()
        for thread in self._threads:
            thread.join(timeout)
        if not written:
            log.error("closing with texts that could not be written: %s", ", ".join(f"{p}/{d}" for p, d in self._jobs))
        return written

    def _start(self) -> None:
        if not self._threads and not self._closing:
            self._threads = [
                threading.Thread(target=self._work, name=f"homing-documents-{number}", daemon=True)
                for number in range(WORKERS)
            ]
            for thread in self._threads:
                thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._closing:
                    return
                key = self._next()
                idle = key is None and not self._ready.wait(self._pause())
                if key is not None:
                    self._current.add(key)
                    job = self._jobs[key]
            if key is not None:
                self._try(key, job)
            elif idle and self._untidy:
                self._tidied()

    def _next(self) -> Key | None:
        now = time.monotonic()
        return next((key for key, job in self._jobs.items() if job.due <= now and key not in self._current), None)

    def _pause(self) -> float | None:
        """How long to sleep unless something comes; None where only that can give work."""
        now = time.monotonic()
        waits = [job.due - now for key, job in self._jobs.items() if key not in self._current]
        if self._untidy:
            waits.append(TICK)
        return max(0.01, min(waits)) if waits else None

    def _try(self, key: Key, job: _Job) -> None:
        with self._lock:
            entry = job.entries[0]
            text = entry.text
        error: HomingError | None = None
        report: Report = Changes
        try:
            report = self._write(*key, text)
        except HomingError as failure:
            error = failure
        except Exception as failure:
            log.exception("%s/%s could not be written", *key)
            error = StoreError(f"{key[0]}/{key[1]} could not be written: {failure}")
        with self._lock:
            self._current.discard(key)
            if error is not None:
                log.warning("%s/%s waits to be written: %s", *key, error)
                job.due = time.monotonic() + RETRY[min(job.failures, len(RETRY) - 1)]
                job.failures += 1
                for saved in entry.waiting:
                    saved.fail(error)
            else:
                job.failures = 0
                job.entries.popleft()
                if not job.entries:
                    del self._jobs[key]
                _tell(entry, report)
            self._changed.notify_all()

    def _tidied(self) -> None:
        try:
            self._untidy = not self._tidy()
        except HomingError as error:
            log.warning("tidying up after deleted projects is put off: %s", error)


def _tell(entry: _Entry, report: Report) -> None:
    for saved in entry.waiting:
        saved.succeed(report)
