"""The codes in memory, one matrix for each collection that is searched, kept up to date with the file.

Memory: dimensions + 16 bytes a vector (40 MB for 100,000 of 384), for a moment twice that when the room runs out. The
least recently searched matrices are let go when all of them together exceed the bound; they are read again when needed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import apsw
import numpy as np

from homing.stores.sqlite.catalog import Catalog
from homing.stores.sqlite.codes import Codes, Keys, Positions, Query, Scores
from homing.stores.sqlite.segments import Counters, Part, parts, removed_after

MEMORY = 2 * 1024**3
"""Bytes that all matrices of a store may take together, by default."""


@dataclass(frozen=True)
class Snapshot:
    """A matrix as one transaction sees it. Never changes, whatever is written meanwhile."""

    state: Counters
    codes: Codes
    dead: Positions
    ascending: bool

    def scores(self, query: Query) -> Scores:
        """The score of each row; nothing where the row was removed."""
        values = query.scores(self.codes)
        values[self.dead] = -np.inf
        return values

    def positions(self, records: Keys) -> Positions:
        """Where these records are; those without a vector are left out."""
        if self.ascending:
            found = np.searchsorted(self.codes.records, records)
            inside = found < self.codes.count
            found, records = found[inside], records[inside]
            found = found[self.codes.records[found] == records]
        else:
            found = np.flatnonzero(np.isin(self.codes.records, records))
        return np.setdiff1d(found, self.dead) if self.dead.size else found


class Matrix:
    """Follows one collection: appends what was added, remembers what was removed, starts over when told to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._now: Snapshot | None = None
        self._room: Codes | None = None

    @property
    def bytes(self) -> int:
        """What it occupies. Room that is not used yet is no memory yet."""
        now = self._now
        return 0 if now is None else now.codes.count * (now.state.dimensions + 16)

    def follow(self, connection: apsw.Connection, state: Counters) -> Snapshot:
        """The matrix as of `state`, which must not be older than what was seen before. The lock must be held."""
        now = self._now
        if now is not None and now.state == state:
            return now
        known = now is not None and (now.state.collection, now.state.space, now.state.epoch) == (
            state.collection,
            state.space,
            state.epoch,
        )
        try:
            self._now = self._advance(connection, state, now if known else None)
        except BaseException:
            self._now = self._room = None
            raise
        return self._now

    def _advance(self, connection: apsw.Connection, state: Counters, before: Snapshot | None) -> Snapshot:
        used = 0 if before is None else before.codes.count
        seen = 0 if before is None else before.state.last_segment
        ascending = before is None or before.ascending
        if before is None:
            self._room = _room(state.live + state.dead, state.dimensions)
        for part in parts(connection, state.collection, state.space, state.dimensions, seen):
            new = _unknown(part, seen, self._codes(used))
            if new.count:
                ascending = ascending and _ascends(self._codes(used), new)
                self._store(used, new)
                used += new.count
        codes = self._codes(used)
        gone = removed_after(connection, state.collection, state.space, before.state.last_removal if before else 0)
        dead = np.empty(0, np.int64) if before is None else before.dead
        if gone.size:
            lost = Snapshot(state, codes, dead, ascending).positions(gone)
            dead = np.concatenate([dead, lost])
        return Snapshot(state, codes, dead, ascending)

    def _codes(self, used: int) -> Codes:
        assert self._room is not None
        return self._room.take(slice(used))

    def _store(self, used: int, new: Codes) -> None:
        assert self._room is not None
        if used + new.count > self._room.count:
            # Snapshots in use keep the old arrays; only rows beyond theirs are ever written.
            larger = _room(used + new.count, new.rows.shape[1])
            larger.put(0, self._codes(used))
            self._room = larger
        self._room.put(used, new)


@dataclass
class Matrices:
    """The matrices of a store, by collection."""

    memory: int = MEMORY
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _held: OrderedDict[str, Matrix] = field(default_factory=OrderedDict)

    @contextmanager
    def current(self, catalog: Catalog, collection: str) -> Iterator[tuple[apsw.Connection, Snapshot | None]]:
        """A transaction, and the matrix of a collection as that transaction sees it; None where it has no vectors."""
        matrix = self._of(collection)
        with ExitStack() as stack:
            # The lock comes first: then what this transaction sees is never older than what is in memory.
            with matrix.lock:
                connection, entry = stack.enter_context(catalog.reading(collection))
                before = matrix.bytes
                found = None
                if entry is not None and entry.counters is not None:
                    found = matrix.follow(connection, entry.counters)
            if found is None:
                self.forget(collection)
            elif matrix.bytes > before:
                self._make_room()
            yield connection, found

    def forget(self, collection: str) -> None:
        """Let one go."""
        with self._lock:
            self._held.pop(collection, None)

    def _of(self, collection: str) -> Matrix:
        with self._lock:
            matrix = self._held.setdefault(collection, Matrix())
            self._held.move_to_end(collection)
            return matrix

    def _make_room(self) -> None:
        with self._lock:
            total = sum(held.bytes for held in self._held.values())
            while total > self.memory and len(self._held) > 1:
                total -= self._held.popitem(last=False)[1].bytes

    @property
    def bytes(self) -> int:
        """What all of them occupy."""
        with self._lock:
            return sum(held.bytes for held in self._held.values())


def _room(rows: int, dimensions: int) -> Codes:
    """Room for so many rows and a third more, so that growing copies each row a few times only."""
    return Codes.room(rows + rows // 3 + 64, dimensions)


def _unknown(part: Part, seen: int, known: Codes) -> Codes:
    """The rows of a segment that are new to a reader which has seen segment `seen`: of a merged one, perhaps a part."""
    if not part.merged_from or seen < part.merged_from:
        return part.codes
    return part.codes.take(~np.isin(part.codes.records, known.records))


def _ascends(known: Codes, new: Codes) -> bool:
    if known.count and known.records[-1] >= new.records[0]:
        return False
    return bool(np.all(new.records[1:] > new.records[:-1]))
