"""Follows a folder: what changes there is in the index a moment later."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from homing.errors import HomingError
from homing.skills.discovery import skill_places
from homing.skills.scan_report import ScanReport

log = logging.getLogger(__name__)

INTERVAL = 0.5
"""Seconds between two looks. A look costs a walk through the folder and a stat for each skill."""


class Watch:
    """Looks at a folder in a thread and scans it when something changed, until it is stopped (or its `with` ends)."""

    def __init__(
        self,
        folder: Path,
        scan: Callable[[Path], ScanReport],
        *,
        on_report: Callable[[ScanReport], None] | None = None,
        interval: float = INTERVAL,
    ) -> None:
        self._folder = folder
        self._scan = scan
        self._on_report = on_report
        self._interval = interval
        self._stopped = threading.Event()
        self._seen = _look(folder)
        self._report(self._scan(folder))
        self._thread = threading.Thread(target=self._follow, name="homing-skills-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; a scan that is under way is waited for."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._stopped.wait(self._interval):
            try:
                now = _look(self._folder)
                if now != self._seen:
                    # Taken before the scan: a change during it is seen at the next look.
                    report = self._scan(self._folder)
                    self._seen = now
                    self._report(report)
            except (HomingError, OSError) as error:
                log.warning("watching %s: %s; trying again", self._folder, error)

    def _report(self, report: ScanReport) -> None:
        if self._on_report is not None:
            self._on_report(report)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _look(folder: Path) -> dict[str, tuple[int, int, int]]:
    """The time, size and number of every SKILL.md: another file in its place has another number."""
    found = {}
    for place in skill_places(folder):
        try:
            stat = place.file.stat()
        except OSError:
            continue
        found[str(place.file)] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return found
