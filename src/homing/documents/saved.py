"""What a save did, known a moment after it returned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from homing.errors import HomingError, Timeout


@dataclass(frozen=True, slots=True)
class Changes:
    """What a save did to the chunks of a document, as ids.

    `changed` are new or say something else, and are embedded; `unchanged` say the same in the same order, wherever they
    stand now; `moved` say the same at another place; `removed` are gone.
    """

    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Saved:
    """A text that was taken, and what became of it.

    `save` returns this at once. Reading `changed`, `unchanged`, `moved` or `removed` waits until the text is on disk
    and its words can be searched, milliseconds for a usual document. Where texts of one document come faster than they
    can be written, some are left out, and the report is that of the one which took their place. Where a text could not
    be written these raise why (StoreBusy: another process holds the file); it is kept and tried again.
    """

    def __init__(self) -> None:
        self._settled = threading.Event()
        self._report: Callable[[], Changes] | None = None
        self._error: HomingError | None = None

    @property
    def done(self) -> bool:
        """Whether the text is on disk."""
        return self._report is not None

    def wait(self, timeout: float | None = None) -> Changes:
        """What the save did. Raises Timeout when it is not known in time, or why it could not be written."""
        if not self._settled.wait(timeout):
            raise Timeout(f"the document was not written within {timeout:g} s; it is kept and tried again")
        if self._report is None:
            assert self._error is not None
            raise self._error
        return self._report()

    @property
    def changed(self) -> tuple[str, ...]:
        """Chunks that are new or say something else."""
        return self.wait().changed

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Chunks that stayed."""
        return self.wait().unchanged

    @property
    def moved(self) -> tuple[str, ...]:
        """Chunks that say the same at another place."""
        return self.wait().moved

    @property
    def removed(self) -> tuple[str, ...]:
        """Chunks that are gone."""
        return self.wait().removed

    def succeed(self, report: Callable[[], Changes]) -> None:
        """Tell whoever waits that it was done; `report` makes the report of it."""
        self._report = report
        self._settled.set()

    def fail(self, error: HomingError) -> None:
        """Tell whoever waits why it was not done yet."""
        self._error = error
        self._settled.set()
