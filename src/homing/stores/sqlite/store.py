"""The embedded default: one SQLite file with vectors (sqlite-vec), keywords (FTS5), texts and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.rows import rows
from homing.errors import DimensionMismatch, ModelMismatch
from homing.records import Match, VectorRecord
from homing.stores.arguments import checked_limit, checked_name, checked_names, checked_space, checked_text
from homing.stores.attributes import wanted
from homing.stores.sqlite import checkup, switching, text_search, vector_search, writing
from homing.stores.sqlite.batch import batches
from homing.stores.sqlite.matrices import MEMORY, Matrices
from homing.stores.sqlite.reading import best_by_id, ids_of, read_records, records_after, records_with_ids
from homing.stores.sqlite.schema import COMPONENT, STEPS
from homing.stores.store import CollectionInfo, SearchOptions
from homing.stores.switching import SpaceInfo
from homing.vectors import Vector, as_vector

PAGE = 500


class SqliteStore:
    """A `Store` in one file.

    Vectors are kept at unit length, exactly; a search reads a one-byte-per-dimension copy held in memory (`memory`
    bounds it) and compares the best candidates exactly. Several processes may read and write the file at once; a search
    sees everything that was committed before it began, by whomever.
    """

    def __init__(self, path: str | Path, *, dimensions: int | None = None, memory: int = MEMORY) -> None:
        self.database = SqliteDatabase(path)
        self.dimensions = dimensions
        self._matrices = Matrices(memory)
        try:
            self.database.migrate(COMPONENT, STEPS)
        except BaseException:
            self.database.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self.database.path

    @property
    def memory_bytes(self) -> int:
        """What the vectors held for searching occupy at the moment."""
        return self._matrices.bytes

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        """Write records; see `Store.upsert`. Everything that can be worked out is, before the file is locked."""
        prepared = batches(records, self.dimensions)
        if not prepared:
            return 0
        with self.database.writing() as connection:
            for batch in prepared:
                writing.upsert(connection, batch)
        return sum(len(batch.ids) for batch in prepared)

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The nearest records; see `Store.search`."""
        checked_name(collection, "collection")
        query, limit, asked = as_vector(vector, dimensions=self.dimensions), checked_limit(limit), wanted(options)
        if not limit:
            return []
        with self._matrices.current(self.database, collection) as (connection, snapshot):
            if snapshot is None:
                return []
            if options is not None and options.model and options.model != snapshot.state.model:
                raise ModelMismatch(
                    f"collection {collection!r} holds vectors of {snapshot.state.model!r}, the query is one of "
                    f"{options.model!r}; ask with the model of the collection, or embed the collection again",
                    details={"expected": snapshot.state.model, "actual": options.model},
                )
            if len(query) != snapshot.state.dimensions:
                raise DimensionMismatch(
                    f"collection {collection!r} holds vectors of {snapshot.state.dimensions} dimensions, "
                    f"the query has {len(query)}; embed it with the model of the collection",
                    details={"expected": snapshot.state.dimensions, "actual": len(query)},
                )
            near = vector_search.search(connection, snapshot, query, limit, asked)
            best = best_by_id(connection, [(found.distance, found.record) for found in near], limit)
            stored = read_records(connection, [key for _, key in best])
            return [
                Match(stored[key].id, collection, value, stored[key].metadata, stored[key].text) for value, key in best
            ]

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The records that share words with the query; see `Store.search_text`."""
        checked_name(collection, "collection")
        checked_text(query, "a query")
        limit, asked = checked_limit(limit), wanted(options)
        if not limit:
            return []
        with self.database.reading() as connection:
            found = writing.find_collection(connection, collection)
            if found is None:
                return []
            relevant = text_search.search(connection, found, query, limit, asked)
            best = best_by_id(connection, [(-match.score, match.record) for match in relevant], limit)
            stored = read_records(connection, [key for _, key in best])
            return [
                Match(stored[key].id, collection, None, stored[key].metadata, stored[key].text, score=-value)
                for value, key in best
            ]

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        """The records that exist, in the order asked for; see `Store.get`."""
        checked_name(collection, "collection")
        wanted_ids = checked_names(ids, "id")
        with self.database.reading() as connection:
            found = writing.find_collection(connection, collection)
            if found is None:
                return []
            by_id = {record.id: record for record in records_with_ids(connection, collection, found, wanted_ids)}
            return [by_id[name] for name in wanted_ids if name in by_id]

    def ids(self, collection: str) -> list[str]:
        """Every id in order; see `Store.ids`."""
        checked_name(collection, "collection")
        with self.database.reading() as connection:
            found = writing.find_collection(connection, collection)
            return [] if found is None else ids_of(connection, found)

    def records(self, collection: str) -> Iterator[VectorRecord]:
        """Every record by id; see `Store.records`. Read in pages: what is written meanwhile may or may not be seen."""
        checked_name(collection, "collection")
        return self._pages(collection)

    def _pages(self, collection: str) -> Iterator[VectorRecord]:
        after = ""
        while True:
            with self.database.reading() as connection:
                found = writing.find_collection(connection, collection)
                page = [] if found is None else records_after(connection, collection, found, after, PAGE)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Remove records everywhere; see `Store.delete`."""
        checked_name(collection, "collection")
        unwanted = checked_names(ids, "id")
        if not unwanted:
            return 0
        with self.database.writing() as connection:
            found = writing.find_collection(connection, collection)
            return 0 if found is None else writing.delete(connection, found.id, unwanted)

    def drop(self, collection: str) -> int:
        """Remove a collection; see `Store.drop`."""
        checked_name(collection, "collection")
        with self.database.writing() as connection:
            found = writing.find_collection(connection, collection)
            if found is None:
                return 0
            writing.drop(connection, found)
        self._matrices.forget(collection)
        return found.records

    def collections(self) -> list[CollectionInfo]:
        """The collections that have records; see `Store.collections`."""
        with self.database.reading() as connection:
            return [
                CollectionInfo(*row)
                for row in rows(
                    connection,
                    "SELECT c.name, c.records, coalesce(m.live, 0), coalesce(s.model, ''), coalesce(s.dimensions, 0) "
                    "FROM collections c LEFT JOIN spaces s ON s.id = c.space "
                    "LEFT JOIN matrices m ON m.collection = c.id AND m.space = c.space "
                    "WHERE c.records > 0 ORDER BY c.name",
                )
            ]

    def model_of(self, collection: str) -> str:
        """The model that answers; see `SwitchesModels.model_of`."""
        checked_name(collection, "collection")
        with self.database.reading() as connection:
            return switching.model_of(connection, collection)

    def spaces(self, collection: str) -> list[SpaceInfo]:
        """The models whose vectors are held; see `SwitchesModels.spaces`."""
        checked_name(collection, "collection")
        with self.database.reading() as connection:
            found = writing.find_collection(connection, collection)
            return [] if found is None else [space.info for space in switching.spaces(connection, found)]

    def stage(self, collection: str, model: str, dimensions: int) -> None:
        """Make room for a second model; see `SwitchesModels.stage`."""
        checked_name(collection, "collection")
        checked_space(model, dimensions, self.dimensions)
        with self.database.writing() as connection:
            found = writing.find_collection(connection, collection)
            if found is not None:
                switching.stage(connection, found, model, dimensions)

    def missing(self, collection: str, model: str) -> Iterator[VectorRecord]:
        """What lacks a vector of this model; see `SwitchesModels.missing`. Read in pages, like `records`."""
        checked_name(collection, "collection")
        return self._missing_pages(collection, model)

    def _missing_pages(self, collection: str, model: str) -> Iterator[VectorRecord]:
        after = -1
        while True:
            with self.database.reading() as connection:
                found = writing.find_collection(connection, collection)
                if found is None:
                    return
                page, after = switching.missing(connection, collection, found, model, after, PAGE)
            yield from page
            if len(page) < PAGE:
                return

    def add_vectors(self, records: Iterable[VectorRecord]) -> int:
        """Give records a vector of a second model; see `SwitchesModels.add_vectors`."""
        prepared = batches(records, self.dimensions)
        if not prepared:
            return 0
        with self.database.writing() as connection:
            return sum(switching.add(connection, batch) for batch in prepared)

    def activate(self, collection: str, model: str, *, complete: bool = True) -> int:
        """Let a model's vectors answer; see `SwitchesModels.activate`."""
        checked_name(collection, "collection")
        with self.database.writing() as connection:
            found = writing.find_collection(connection, collection)
            return 0 if found is None else switching.activate(connection, collection, found, model, complete)

    def discard(self, collection: str, model: str) -> int:
        """Let go of a model's vectors; see `SwitchesModels.discard`."""
        checked_name(collection, "collection")
        with self.database.writing() as connection:
            found = writing.find_collection(connection, collection)
            return 0 if found is None else switching.discard(connection, collection, found, model)

    def check(self) -> list[str]:
        """What is wrong inside the file, a sentence each; see `Store.check`."""
        with self.database.reading() as connection:
            return list(checkup.findings(connection))

    def sizes(self) -> dict[str, int]:
        """Bytes of the file by what they hold: texts, vectors, codes, keywords, filters, other."""
        with self.database.reading() as connection:
            return checkup.sizes(connection)

    def versions(self) -> dict[str, str]:
        """The engines behind the store: SQLite and its vector extension, as they answer themselves."""
        with self.database.reading() as connection:
            [(engine, extension)] = rows(connection, "SELECT sqlite_version(), vec_version()")
        return {"sqlite": engine, "sqlite-vec": extension}

    def close(self) -> None:
        """Let go of the file. Closing twice is fine."""
        self.database.close()
