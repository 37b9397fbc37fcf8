"""What is known of a collection, read once for as long as nobody writes to the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import apsw

from homing.database.sqlite import SqliteDatabase
from homing.stores.sqlite.segments import Counters
from homing.stores.sqlite.writing import Collection


@dataclass(frozen=True, slots=True)
class Entry:
    """A collection, and where the vectors stand that serve it; None where there are none."""

    collection: Collection
    counters: Counters | None

    @property
    def model(self) -> str:
        """The model that serves it; empty where nothing has a vector."""
        return self.counters.model if self.counters is not None and self.counters.live else ""

    @property
    def pending(self) -> int:
        """How many records have no vector of that model."""
        return self.collection.records - (self.counters.live if self.counters is not None else 0)


class Catalog:
    """The entries of a file, by name. Safe to call from several threads."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._known: tuple[int, dict[str, Entry | None]] = (-1, {})

    @contextmanager
    def reading(self, name: str) -> Iterator[tuple[apsw.Connection, Entry | None]]:
        """A transaction, and a collection as that transaction sees it."""
        with self._database.snapshot() as (connection, version):
            yield connection, _read(connection, name) if version is None else self._find(connection, name, version)

    def find(self, name: str) -> Entry | None:
        """A collection as it is now; where nobody wrote since it was last asked for, nothing is read."""
        seen, entries = self._known
        if name in entries and self._database.version() == seen:
            return entries[name]
        with self.reading(name) as (_, entry):
            return entry

    def _find(self, connection: apsw.Connection, name: str, version: int) -> Entry | None:
        seen, entries = self._known
        if version != seen:
            entries = {}
            self._known = (version, entries)
        if name not in entries:
            entries[name] = _read(connection, name)
        return entries[name]


def _read(connection: apsw.Connection, name: str) -> Entry | None:
    row = connection.execute(
        "SELECT c.id, c.space, c.records, s.model, s.dimensions, m.epoch, m.last_segment, m.last_removal, m.live, "
        "m.dead FROM collections c LEFT JOIN spaces s ON s.id = c.space "
        "LEFT JOIN matrices m ON m.collection = c.id AND m.space = c.space WHERE c.name = ?",
        (name,),
    ).fetchone()
    if row is None:
        return None
    number, space, records, model, dimensions, epoch, *rest = row
    found = None if epoch is None else Counters(number, space, model, dimensions, epoch, *rest)
    return Entry(Collection(number, space, records, dimensions or 0), found)
