"""What a request may be told while it is worked on, and what it may tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from homing.errors import Canceled
from homing.on_search import OnSearch, ignore_search


def _nobody_listens(done: int, total: int) -> None:
    return None


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Work:
    """The wires to the caller: `progress(done, total)` and `on_search` out, `cancelled()` in, all from any thread.

    `on_search` is told of every search that was answered.
    """

    progress: Callable[[int, int], None] = _nobody_listens
    cancelled: Callable[[], bool] = _never
    on_search: OnSearch = ignore_search

    def go_on(self) -> None:
        """Raises Canceled where the caller took the request back."""
        if self.cancelled():
            raise Canceled("the request was canceled; what was done until then stays done")
