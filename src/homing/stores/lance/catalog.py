"""Which collection is in which table, and what a killed writer left behind.

A collection gets a table of its own with a name that is never used again, so nobody mistakes a new one for an old one.
Whatever takes more than one commit is first written down here: collections that are being made, being written together
with others, or being dropped. One commit to this table then ends it for all of them. Whoever next holds the lock undoes
what was begun and not ended (and finishes a drop).
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Literal

from homing.errors import StoreBusy, StoreCorrupt
from homing.stores.lance.database import Database, Table, any_of, mark_schema
from homing.stores.lance.engine import arrow, translated

logger = logging.getLogger(__name__)

LEASE = 600.0
"""Seconds after which work begun by another machine, where no lock reaches, is taken for abandoned."""

State = Literal["live", "creating", "writing", "dropping"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A collection, its table, and what is being done to it; `version` is the commit to return to."""

    collection: str
    table: str
    state: State = "live"
    version: int = 0
    since: float = 0.0

    @property
    def visible(self) -> bool:
        """Whether readers see it."""
        return self.state in ("live", "writing")


class Catalog:
    """The collections of a database, followed from commit to commit."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._table = database.mark
        self._lock = threading.Lock()
        self._seen = -1
        self._entries: Mapping[str, Entry] = {}
        self._tables: dict[str, Table] = {}
        if self._pending(self.entries()):
            with database.writing():
                self.settle()
        self._check_complete()

    def entries(self) -> Mapping[str, Entry]:
        """Every collection by name, as of now."""
        self.database.check_open()
        with self._lock:
            version = self._table.version
            if version != self._seen:
                with translated(self.database.address):
                    rows = self._table.handle.search().limit(None).to_arrow().to_pylist()
                self._entries = {row["collection"]: Entry(**row) for row in rows}
                self._seen = version
                used = {entry.table for entry in self._entries.values()}
                self._tables = {name: table for name, table in self._tables.items() if name in used}
            return self._entries

    def table(self, collection: str) -> Table | None:
        """The table of a collection that readers may see."""
        entry = self.entries().get(collection)
        return None if entry is None or not entry.visible else self.open(entry)

    def drop(self, entry: Entry) -> None:
        """Remove a collection with its table. The lock must be held."""
        dropping = [replace(entry, state="dropping")]
        self.begin(dropping)
        self.undo(dropping)

    def open(self, entry: Entry) -> Table:
        """The table of an entry, kept open."""
        found = self._tables.get(entry.table)
        if found is None:
            with translated(self.database.address):
                found = self._tables[entry.table] = Table(self.database, entry.table, self.database.handle(entry.table))
        return found

    def pinned(self, entry: Entry) -> Table:
        """The table of an entry for one who is about to write, or has the lock; see `Table.pinned`."""
        return self.open(entry).pinned()

    def begin(self, entries: Iterable[Entry]) -> None:
        """Write down what is going to be done. The lock must be held."""
        now = time.time()
        self._write([replace(entry, since=now) for entry in entries])

    def end(self, entries: Iterable[Entry]) -> None:
        """It is done, for all of them at once. The lock must be held."""
        self._write([replace(entry, state="live", version=0, since=0.0) for entry in entries])

    @contextmanager
    def as_one(self, entries: list[Entry]) -> Iterator[None]:
        """Several commits that count as one: what is done inside is undone if it fails or is killed before its end."""
        self.begin(entries)
        try:
            yield
            self.end(entries)
        except BaseException:
            self.undo(entries)
            raise

    def settle(self, collections: Iterable[str] = ()) -> Mapping[str, Entry]:
        """Every collection by name, once what was begun and not ended is undone. The lock must be held, so nobody on
        this machine is still at it; collections that another machine has begun to write are refused."""
        entries = self.entries()
        pending = self._pending(entries)
        if pending:
            logger.warning("%s: undoing what a killed process began", self.database.address)
            self.undo(pending)
            entries = self.entries()
        for name in collections:
            entry = entries.get(name)
            if entry is not None and entry.state != "live":
                raise StoreBusy(
                    f"collection {name!r} is being written by another machine; try again in a while",
                    details={"collection": name},
                )
        return entries

    def undo(self, entries: Iterable[Entry]) -> None:
        """Return to what was before: tables that were being made are removed, written ones restored, drops finished."""
        gone, restored = [], []
        for entry in entries:
            if entry.state == "writing":
                self.open(entry).restore(entry.version)
                restored.append(entry)
            else:
                self.database.drop(entry.table)
                gone.append(entry.collection)
        if restored:
            self.end(restored)
        if gone:
            self._table.delete(any_of("collection", gone))

    def _pending(self, entries: Mapping[str, Entry]) -> list[Entry]:
        shared = self.database.address.folder is None
        return [
            entry
            for entry in entries.values()
            if entry.state != "live" and (not shared or abs(time.time() - entry.since) > LEASE)
        ]

    def _check_complete(self) -> None:
        there = set(self.database.names())
        for entry in self.entries().values():
            if entry.visible and entry.table not in there:
                raise StoreCorrupt(
                    f"{self.database.address} has lost the table {entry.table} of collection {entry.collection!r}; "
                    "restore a copy, or move it away and index again",
                    details={"collection": entry.collection, "table": entry.table},
                )

    def _write(self, entries: list[Entry]) -> None:
        rows = arrow().Table.from_pylist([asdict(entry) for entry in entries], schema=mark_schema())
        self._table.pinned().upsert(rows, key="collection")


def new_table_name(collection: str) -> str:
    """A name for the table of a collection: readable where it can be, and never given twice."""
    readable = re.sub(r"[^a-z0-9]+", "-", collection.lower())[:32].strip("-")
    return f"c-{readable or 'x'}-{secrets.token_hex(6)}"
