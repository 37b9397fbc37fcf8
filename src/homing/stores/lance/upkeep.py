"""Tables are tidied up by themselves: small files merged, old versions removed, indexes made and brought up to date.

Every write adds a file and a version; left alone, searches would get slower with each. After a write the table is
looked at, which takes a millisecond. Where something is due it is done in a thread, once writers pause. Merging holds
the lock; building an index does not. What is not done when a process dies is left to the next one that writes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from homing.errors import HomingError, StoreError
from homing.stores.lance.database import Index, Table
from homing.stores.lance.engine import translated
from homing.stores.lance.vector_search import build_index, index_is_due

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on something is done."""

    files: int = 16
    """Data files of a small table; merging rewrites it, so a large one may have one more for each `rows_per_file`."""
    rows_per_file: int = 5_000
    versions: int = 100
    unindexed: int = 1_000
    """Rows that no index has yet; of a large table, `unindexed_share` of its rows."""
    unindexed_share: float = 0.01
    lookup: int = 2_000
    """Rows from which on keys and attributes are indexed …"""
    vectors: int = 20_000
    """… and from which on vectors are; with fewer, comparing all of them is as fast."""
    keep: timedelta = timedelta(seconds=10)
    """How long a version stays for those who still read it."""
    quiet: float = 1.0
    """Seconds without a write after which work begins …"""
    patience: float = 10.0
    """… and seconds after which files are merged in any case. Indexes wait: more rows are still coming."""

    def behind(self, indexed: int, unindexed: int) -> bool:
        """Whether an index lacks too many rows: more than it has, too, since what it has it weighs by that alone."""
        few = min(self.unindexed, indexed) if indexed else self.unindexed
        return unindexed > max(few, int((indexed + unindexed) * self.unindexed_share))


class Upkeep:
    """Looks after the tables of one database, one at a time, in a thread that lives while there is something to do."""

    def __init__(self, indexes: Sequence[Index], *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._indexes = indexes
        self._changed = threading.Condition()
        self._due: dict[str, Table] = {}
        self._last_write = 0.0
        self._worker: threading.Thread | None = None
        self._closing = False

    def wrote(self, table: Table) -> None:
        """Look at a table after a write, and see to it in a while if that is needed."""
        try:
            due = self.is_due(table)
        except StoreError as error:
            logger.warning("%s: cannot be looked after: %s", table.name, error)
            return
        with self._changed:
            self._last_write = time.monotonic()
            if due and not self._closing:
                self._due.setdefault(table.name, table)
                if self._worker is None:
                    # Not a daemon: a program that ends waits for the merge it began.
                    self._worker = threading.Thread(target=self._work, name="homing-lance-upkeep")
                    self._worker.start()

    def is_due(self, table: Table) -> bool:
        """Whether anything should be done to a table."""
        return index_is_due(table, self.limits.vectors) or self._untidy(table) or bool(self._missing(table))

    def tend(self, table: Table, *, indexes: bool = True) -> None:
        """Do what is due, with or without new indexes. Where another process is at it, nothing."""
        with _alone(table) as alone, translated(table.database.address):
            if not alone:
                return
            table = table.pinned()
            if self._untidy(table):
                with table.database.writing():
                    table.handle.optimize(cleanup_older_than=self.limits.keep)
            for index in self._missing(table) if indexes else []:
                table.add_index(index)
            if indexes and index_is_due(table, self.limits.vectors):
                build_index(table, self.limits.vectors)

    def rebuild(self, table: Table) -> None:
        """Make every index of a table anew that it has or should have."""
        with translated(table.database.address):
            there = {column for index in table.handle.list_indices() for column in index.columns}
            for index in (*(one for one in self._indexes if one.column in there), *self._missing(table)):
                table.add_index(index)
            build_index(table, self.limits.vectors)

    def close(self) -> None:
        """Finish what is due, without waiting for a pause."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            worker = self._worker
        if worker is not None:
            worker.join()

    def _work(self) -> None:
        while True:
            paused = self._wait_for_a_pause()
            with self._changed:
                if not self._due:
                    self._worker = None
                    return
                name, table = next(iter(self._due.items()))
                del self._due[name]
                if not paused:
                    self._due[name] = table
            try:
                self.tend(table, indexes=paused)
            except HomingError as error:
                # Dropped meanwhile, closed, or overtaken by another machine: the next write looks again.
                logger.info("%s: left untidied: %s", name, error)
            except Exception:
                # A thread has no caller to raise to. The store works on, slower.
                logger.exception("%s: left untidied", name)

    def _wait_for_a_pause(self) -> bool:
        """Whether writers have paused; False where they go on for longer than we wait."""
        began = time.monotonic()
        with self._changed:
            while not self._closing:
                now = time.monotonic()
                quiet, patient = self._last_write + self.limits.quiet, began + self.limits.patience
                if now >= min(quiet, patient):
                    return now >= quiet
                self._changed.wait(min(quiet, patient) - now)
        return True

    def _untidy(self, table: Table) -> bool:
        with translated(table.database.address):
            stats = table.handle.stats()
            indexes = table.handle.list_indices()
        rows, limits = stats["num_rows"], self.limits
        if stats["fragment_stats"]["num_fragments"] > limits.files + rows // limits.rows_per_file:
            return True
        behind = any(limits.behind(index.num_indexed_rows, index.num_unindexed_rows) for index in indexes)
        return behind or _versions(table) > limits.versions

    def _missing(self, table: Table) -> list[Index]:
        with translated(table.database.address):
            rows = table.handle.count_rows()
            there = {column for index in table.handle.list_indices() for column in index.columns}
            columns = set(table.handle.schema.names)
        return [
            index
            for index in self._indexes
            if index.column in columns and index.column not in there and rows >= index.from_rows
        ]


def _versions(table: Table) -> int:
    """How many versions are kept. In object storage they are not listed after every write: merging removes them."""
    folder = table.database.address.folder
    return 0 if folder is None else sum(1 for _ in (folder / f"{table.name}.lance" / "_versions").glob("*.manifest"))


@contextmanager
def _alone(table: Table) -> Iterator[bool]:
    from filelock import FileLock, Timeout

    lock = FileLock(f"{table.database.address.lock}.upkeep")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
