"""Who hears that a search was answered: the counters of a server, or nobody."""

from __future__ import annotations

from typing import Protocol

from homing.records import Mode


class OnSearch(Protocol):
    """Called once for each search that was answered, in any thread; must not raise."""

    def __call__(self, source: str, mode: Mode, degraded: bool) -> None: ...


def ignore_search(source: str, mode: Mode, degraded: bool) -> None:
    """For those that count nothing."""
