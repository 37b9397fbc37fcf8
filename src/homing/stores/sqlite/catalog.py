"""What is known of a collection, read once for as long as nobody writes to the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

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
        self._known: WeakKeyDictionary[apsw.Connection, tuple[int, dict[str, Entry | None]]] = WeakKeyDictionary()

    @contextmanager
    def reading(self, name: str) -> Iterator[tuple[apsw.Connection, Entry | None]]:
        """A transaction, and a collection as that transaction sees it; where nobody wrote since this connection was
        last asked for it, nothing is read."""
        with self._database.reading() as connection:
            # What is read first fixes what the transaction sees. The number means something to this connection alone.
            version = connection.pragma("data_version")
            seen, entries = self._known.get(connection, (None, {}))
            if seen != version:
                entries = {}
                self._known[connection] = (version, entries)
            if name not in entries:
                entries[name] = _read(connection, name)
            yield connection, entries[name]

    def find(self, name: str) -> Entry | None:
        """A collection as it is now."""
        with self.reading(name) as (_, entry):
            return entry


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
