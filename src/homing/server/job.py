"""One piece of long work: how it stands, what happens to it, and a way to stop it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from homing.errors import Canceled, HomingError

logger = logging.getLogger(__name__)

State = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED: frozenset[State] = frozenset({"done", "failed", "cancelled"})
EVENTS_KEPT = 200
"""Events of a job that a stream which was cut can ask for again."""
PROGRESS_EVERY = 0.1
"""Seconds between two events about progress: people do not read faster."""


@dataclass(frozen=True, slots=True)
class Report:
    """Tells how much of how much is done. Raises where the job was cancelled, so that the work ends there."""

    job: Job

    def __call__(self, done: int, total: int) -> None:
        self.job.progress(done, total)

    def canceled(self) -> bool:
        """Whether it was, for work that takes long between two signs of progress."""
        return self.job.canceled


Work = Callable[[Report], Mapping[str, Any]]
"""What a job does; returns plain data."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it was at one moment. `error` has the code and the message of what it failed with."""

    id: str
    kind: str
    subject: str
    user: str
    state: State = "waiting"
    done: int = 0
    total: int = 0
    result: Mapping[str, Any] | None = None
    error: Mapping[str, str] | None = None
    created: float = field(default_factory=time.time)
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A job as it was after something happened to it; numbers grow by one."""

    number: int
    view: JobView


class Job:
    """One piece of work. Safe from several threads. `elsewhere` is whether another server is at it."""

    def __init__(self, view: JobView, *, shared: bool, elsewhere: bool = False) -> None:
        self.shared = shared
        self.elsewhere = elsewhere
        self._lock = threading.Lock()
        self._view = view
        self._events: deque[Event] = deque([Event(1, self._view)], maxlen=EVENTS_KEPT)
        self._listeners: list[Callable[[], None]] = []
        self._cancelled = threading.Event()
        self._told_at = 0.0

    @property
    def view(self) -> JobView:
        """How it stands."""
        return self._view

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self._view.state in ENDED

    def cancel(self) -> None:
        """Ask it to stop: at once where it waits, at its next sign of progress where it runs."""
        self._cancelled.set()
        self._change(only_from="waiting", state="cancelled", ended=time.time())

    def follow(self, view: JobView) -> None:
        """It stands like this now, as another server has written down."""
        if view != self._view:
            self._change(
                **{name: getattr(view, name) for name in ("state", "done", "total", "result", "error", "ended")}
            )

    def events_after(self, number: int) -> list[Event]:
        """What happened since an event; where that is long gone, what is still remembered."""
        with self._lock:
            return [event for event in self._events if event.number > number]

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have something called after every event; returns what ends that."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return stop

    def run(self, work: Work) -> None:
        """Do the work and remember how it ended. Never raises."""
        if not self._change(only_from="waiting", state="running"):
            return
        try:
            result = work(Report(self))
        except Canceled:
            self._change(state="cancelled", ended=time.time())
        except HomingError as error:
            self._change(state="failed", error={"code": error.code, "message": error.message}, ended=time.time())
        except Exception as error:
            logger.exception("job %s (%s) failed unexpectedly", self._view.id, self._view.kind)
            message = f"an unexpected failure ({type(error).__name__}); see the server's log"
            self._change(state="failed", error={"code": "INTERNAL_ERROR", "message": message}, ended=time.time())
        else:
            self._change(state="done", result=result, ended=time.time())

    @property
    def canceled(self) -> bool:
        """Whether it was asked to stop."""
        return self._cancelled.is_set()

    def progress(self, done: int, total: int) -> None:
        """Write down how far it is. Raises Canceled."""
        if self._cancelled.is_set():
            raise Canceled("the job was cancelled")
        now = time.monotonic()
        # The end of a stretch of work, and the beginning of another, are told whenever they come.
        if now - self._told_at >= PROGRESS_EVERY or done == total or total != self._view.total:
            self._told_at = now
            self._change(done=done, total=total)

    def _change(self, *, only_from: State | None = None, **changes: Any) -> bool:
        """Whether it did change: what has ended stays, and nobody gets in between the look and the change."""
        with self._lock:
            if self.ended or only_from not in (None, self._view.state):
                return False
            self._view = replace(self._view, **changes)
            self._events.append(Event(self._events[-1].number + 1, self._view))
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
        return True
