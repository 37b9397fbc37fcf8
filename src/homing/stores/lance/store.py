"""The store on LanceDB: a table for each collection, in a folder or in object storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from homing.records import Match, VectorRecord
from homing.stores.arguments import checked_limit, checked_name, checked_names, checked_space, checked_text
from homing.stores.attributes import wanted
from homing.stores.batches import batches
from homing.stores.lance import checkup, reading, switching, text_search, vector_search
from homing.stores.lance.address import Address
from homing.stores.lance.catalog import Catalog
from homing.stores.lance.database import Database
from homing.stores.lance.faults import fault, is_gone, translated
from homing.stores.lance.filtering import condition
from homing.stores.lance.indexes import key_index, labels_index, words_index
from homing.stores.lance.rows import space_of
from homing.stores.lance.table import Table, any_of
from homing.stores.lance.upkeep import Limits, Upkeep
from homing.stores.lance.vector_index import VectorIndex
from homing.stores.lance.writing import EMBEDDED, Writer
from homing.stores.store import CollectionInfo, SearchOptions
from homing.stores.switching import SpaceInfo
from homing.vectors import Vector, as_vector

T = TypeVar("T")

ATTEMPTS = 5
"""How often a read is begun again because the version it read was cleaned up meanwhile."""


class LanceStore:
    """A `Store` in a folder, or in object storage.

    Vectors are kept at unit length, exactly, and searched exactly: by a scan while they are few, later through an index
    whose candidates are compared exactly. Several processes of one machine may write at once; a read sees everything
    that was committed before it began, by whomever. One call that writes to several collections is all or nothing, also
    when the process is killed, but somebody who reads meanwhile may see one collection before the other.
    """

    def __init__(
        self, address: Address | str | Path, *, dimensions: int | None = None, limits: Limits | None = None
    ) -> None:
        self.database = Database(address)
        self.dimensions = dimensions
        self._catalog = Catalog(self.database)
        self._models: dict[str, tuple[int, str]] = {}
        limits = limits or Limits()
        self._upkeep = Upkeep(
            (key_index(from_rows=limits.lookup), labels_index(from_rows=limits.lookup), words_index()),
            vectors=VectorIndex(limits.vectors),
            limits=limits,
        )

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        """Write records; see `Store.upsert`. Everything that can be worked out is, before the lock is taken."""
        self.database.check_open()
        prepared = batches(records, self.dimensions)
        if not prepared:
            return 0
        with self.database.writing():
            written = Writer(self.database, self._catalog).upsert(prepared)
        for table in written:
            self._upkeep.wrote(table)
        return sum(len(batch.records) for batch in prepared)

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The nearest records; see `Store.search`."""
        checked_name(collection, "collection")
        query, limit = as_vector(vector, dimensions=self.dimensions), checked_limit(limit)
        asked = condition(wanted(options))
        model = options.model if options is not None else ""

        def ask(table: Table) -> list[Match]:
            return vector_search.search(table, collection, query, limit, asked, model) if limit else []

        return self._read(collection, ask, [])

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The records that share words with the query; see `Store.search_text`."""
        checked_name(collection, "collection")
        checked_text(query, "a query")
        limit, asked = checked_limit(limit), condition(wanted(options))

        def ask(table: Table) -> list[Match]:
            return text_search.search(table, collection, query, limit, asked) if limit else []

        return self._read(collection, ask, [])

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        """The records that exist, in the order asked for; see `Store.get`."""
        checked_name(collection, "collection")
        asked = checked_names(ids, "id")
        nothing: dict[str, VectorRecord] = {}
        found = self._read(collection, lambda table: reading.with_ids(table, collection, asked), nothing)
        return [found[name] for name in asked if name in found]

    def ids(self, collection: str) -> list[str]:
        """Every id in order; see `Store.ids`."""
        checked_name(collection, "collection")
        nothing: list[str] = []
        return self._read(collection, reading.ids_of, nothing)

    def records(self, collection: str) -> Iterator[VectorRecord]:
        """Every record by id; see `Store.records`. As of one commit, unless it is cleaned up while it is being read."""
        checked_name(collection, "collection")
        self.database.check_open()
        return self._all(collection)

    def _all(self, collection: str) -> Iterator[VectorRecord]:
        last: str | None = None
        for attempt in range(ATTEMPTS):
            table = self._catalog.table(collection)
            if table is None:
                return
            try:
                for record in reading.after(table, collection, last):
                    last = record.id
                    yield record
                return
            except (RuntimeError, ValueError, OSError) as error:
                if attempt == ATTEMPTS - 1 or not is_gone(error):
                    raise fault(self.database.address, error) from error

    def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Remove records everywhere; see `Store.delete`."""
        checked_name(collection, "collection")
        unwanted = checked_names(ids, "id")
        if not unwanted:
            self.database.check_open()
            return 0
        with self.database.writing():
            self._catalog.settle()
            self._catalog.check_free([collection])
            table = self._catalog.table(collection)
            if table is None:
                return 0
            removed = table.delete(any_of("id", list(dict.fromkeys(unwanted))))
        self._upkeep.wrote(table)
        return removed

    def drop(self, collection: str) -> int:
        """Remove a collection; see `Store.drop`."""
        checked_name(collection, "collection")
        with self.database.writing():
            self._catalog.settle()
            self._catalog.check_free([collection])
            entry = self._catalog.entries().get(collection)
            if entry is None:
                return 0
            count = self._catalog.open(entry).count()
            self._catalog.let_go([entry, *self._catalog.aside(collection)])
        self._upkeep.wrote(self.database.mark)
        return count

    def collections(self) -> list[CollectionInfo]:
        """The collections that have records; see `Store.collections`."""
        names = sorted(name for name, entry in self._catalog.entries().items() if entry.visible)
        found = [self._read(name, _counted(name), None) for name in names]
        return [info for info in found if info is not None and info.records]

    def model_of(self, collection: str) -> str:
        """The model that answers; see `SwitchesModels.model_of`."""
        checked_name(collection, "collection")
        return self._read(collection, self._model, "")

    def _model(self, table: Table) -> str:
        version = table.version
        seen, model = self._models.get(table.name, (-1, ""))
        if seen != version:
            space = space_of(table.schema)
            model = space.model if space is not None and table.count(EMBEDDED) else ""
            self._models[table.name] = (version, model)
        return model

    def spaces(self, collection: str) -> list[SpaceInfo]:
        """The models whose vectors are held; see `SwitchesModels.spaces`."""
        checked_name(collection, "collection")
        return self._read(collection, lambda table: self._switching(collection, table).spaces(), [])

    def stage(self, collection: str, model: str, dimensions: int) -> None:
        """Make room for a second model; see `SwitchesModels.stage`."""
        checked_name(collection, "collection")
        checked_space(model, dimensions, self.dimensions)
        with self._changing(collection) as found:
            if found is not None:
                found.stage(model, dimensions)

    def missing(self, collection: str, model: str) -> Iterator[VectorRecord]:
        """What lacks a vector of this model; see `SwitchesModels.missing`."""
        checked_name(collection, "collection")
        nothing: list[str] = []
        ids = self._read(collection, lambda table: self._switching(collection, table).missing(model), nothing)
        return self._without_vectors(collection, ids)

    def _without_vectors(self, collection: str, ids: list[str]) -> Iterator[VectorRecord]:
        for start in range(0, len(ids), reading.PAGE):
            for record in self.get(collection, ids[start : start + reading.PAGE]):
                yield replace(record, embedding=None, model="")

    def add_vectors(self, records: Iterable[VectorRecord]) -> int:
        """Give records a vector of a second model; see `SwitchesModels.add_vectors`."""
        self.database.check_open()
        written = 0
        for batch in batches(records, self.dimensions):
            with self._changing(batch.collection) as found:
                written += 0 if found is None else found.add(batch)
        return written

    def activate(self, collection: str, model: str, *, complete: bool = True) -> int:
        """Let a model's vectors answer; see `SwitchesModels.activate`."""
        checked_name(collection, "collection")
        with self._changing(collection) as found:
            return 0 if found is None else found.activate(model, complete=complete)

    def discard(self, collection: str, model: str) -> int:
        """Let go of a model's vectors; see `SwitchesModels.discard`."""
        checked_name(collection, "collection")
        with self._changing(collection) as found:
            return 0 if found is None else found.discard(model)

    @contextmanager
    def _changing(self, collection: str) -> Iterator[switching.Collection | None]:
        """A collection that nobody else writes to meanwhile."""
        with self.database.writing(), translated(self.database.address):
            self._catalog.settle()
            self._catalog.check_free([collection])
            table = self._catalog.table(collection)
            yield None if table is None else self._switching(collection, table)
        table = self._catalog.table(collection)
        if table is not None:
            self._upkeep.wrote(table)

    def _switching(self, collection: str, table: Table) -> switching.Collection:
        return switching.Collection(self.database, self._catalog, collection, table)

    def check(self) -> list[str]:
        """What is wrong inside the store, a sentence each; see `Store.check`. Reads everything."""
        return list(checkup.findings(self._catalog))

    def close(self) -> None:
        """Finish merging and indexing what is due, then let go. Closing twice is fine."""
        self._upkeep.close()
        self.database.close()

    def _read(self, collection: str, ask: Callable[[Table], T], nothing: T) -> T:
        """Ask a collection's table. A version that was cleaned up, or a table that was dropped, is looked up again."""
        for attempt in range(ATTEMPTS):
            table = self._catalog.table(collection)
            if table is None:
                return nothing
            try:
                return ask(table)
            except (RuntimeError, ValueError, OSError) as error:
                if attempt == ATTEMPTS - 1 or not is_gone(error):
                    raise fault(self.database.address, error) from error
        raise AssertionError("unreachable")


def _counted(name: str) -> Callable[[Table], CollectionInfo]:
    def ask(table: Table) -> CollectionInfo:
        space = space_of(table.schema)
        records = table.handle.count_rows()
        embedded = table.handle.count_rows("text_hash IS NOT NULL") if space is not None else 0
        if space is None or not embedded:
            return CollectionInfo(name, records, 0, "", 0)
        return CollectionInfo(name, records, embedded, space.model, space.dimensions)

    return ask
