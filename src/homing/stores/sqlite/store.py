"""The embedded default: one SQLite file with texts, metadata, vectors (sqlite-vec) and a keyword index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from homing.database import Transaction
from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.database import rows
from homing.records import Match, VectorRecord
from homing.stores.arguments import check_query, checked_limit, checked_name, checked_names, checked_text
from homing.stores.filters import wanted
from homing.stores.postings.index import Index
from homing.stores.postings.tables import Merger
from homing.stores.sqlite import models, reading, repair, schema, vectors, words, writing
from homing.stores.sqlite.reading import Catalog, Collection, Estimates, find_collection
from homing.stores.store import CollectionInfo, Measured, ModelInfo, Near, NewVector, Rebuilt, SearchOptions, Words
from homing.vectors import Vector, as_vector

PAGE = 500

T = TypeVar("T")


class SqliteStore:
    """A `Store` in one file, or in a database that somebody else opened and closes.

    Vectors are kept at unit length, exactly; a search reads a one-byte-per-dimension copy held in memory (`memory`
    bounds it) and compares the best candidates exactly. Several processes may read and write the file at once; a search
    sees everything that was committed before it began, by whomever. What a method promises is said in `Store`.
    """

    def __init__(
        self, place: str | Path | SqliteDatabase, *, dimensions: int | None = None, memory: int = vectors.MEMORY
    ) -> None:
        self._owns = not isinstance(place, SqliteDatabase)
        self.database = place if isinstance(place, SqliteDatabase) else SqliteDatabase(place)
        self.dimensions = dimensions
        self._matrices = vectors.Matrices(memory)
        self._catalog = Catalog(self.database)
        self._estimates = Estimates()
        self._words = Index()
        self._merger = Merger(partial(words.merge, self.database))
        try:
            self.database.migrate(schema.COMPONENT, schema.STEPS)
            if not self.database.read_only:
                writing.free_room(self.database)
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the file for itself."""
        return partial(SqliteStore, dimensions=self.dimensions), (self.path.absolute(),)

    @property
    def path(self) -> Path:
        """The file."""
        return self.database.path

    @property
    def memory_bytes(self) -> int:
        """What the vectors held for searching occupy at the moment."""
        return self._matrices.bytes

    def write(self, records: Iterable[VectorRecord], transaction: Transaction | None = None) -> int:
        # Everything that can be worked out is, before the file is locked.
        prepared = writing.batches(records, self.dimensions)
        if prepared:
            with self._writing(transaction) as connection:
                due = [writing.write(connection, batch) for batch in prepared]
            for collection in due:
                if collection is not None:
                    self._merger.wake(collection)
        return sum([len(batch.records) for batch in prepared])

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        return self.write(records)

    def delete(self, collection: str, ids: Sequence[str], transaction: Transaction | None = None) -> int:
        checked_name(collection, "collection")
        unwanted = checked_names(ids, "id")

        def work(connection: apsw.Connection, found: Collection) -> int:
            return writing.delete(connection, found.id, unwanted)

        return self._change(collection, work, 0, transaction) if unwanted else 0

    def drop(self, collection: str) -> int:
        """Remove a collection; see `Store.drop`. It is gone at once; its room is freed in portions."""

        def work(connection: apsw.Connection, found: Collection) -> int:
            # Without its name nobody finds it any more, and a new one may have the name.
            connection.execute("UPDATE collections SET name = NULL WHERE id = ?", (found.id,))
            return found.records

        count = self._change(collection, work, 0)
        writing.free_room(self.database)
        self._matrices.forget(collection)
        return count

    def search_vector(
        self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
    ) -> list[Near]:
        checked_name(collection, "collection")
        query, limit, asked = as_vector(vector, dimensions=self.dimensions), checked_limit(limit), wanted(options)
        if not limit:
            return []
        with self._matrices.current(self._catalog, collection) as (connection, found, snapshot):
            if found is None or snapshot is None:
                return []
            model = "" if options is None else options.model
            check_query(collection, snapshot.state.model, snapshot.state.dimensions, len(query), model)
            asked = self._estimates.telling(connection, found, asked)
            return vectors.search(connection, found, snapshot, query, limit, asked, self._estimates)

    def search_words(self, collection: str, query: str, limit: int, options: SearchOptions | None = None) -> Words:
        checked_text(query, "a query")
        limit, asked = checked_limit(limit), wanted(options)

        def work(connection: apsw.Connection, found: Collection) -> Words:
            telling = self._estimates.telling(connection, found, asked)
            return words.search(connection, found, query, limit, telling, self._estimates, self._words)

        return self._look(collection, work, Words()) if limit else Words()

    def measure(
        self, collection: str, ids: Sequence[str], *, vector: Vector | None = None, query: str = ""
    ) -> list[Measured]:
        asked = None if vector is None else as_vector(vector, dimensions=self.dimensions)

        def work(connection: apsw.Connection, found: Collection) -> list[Measured]:
            if asked is not None and found.counters is not None:
                check_query(collection, found.counters.model, found.counters.dimensions, len(asked))
            keys, near = vectors.measured(connection, found, ids, asked)
            scores = words.measure(connection, found, query, list(keys.values()), self._words)
            return [Measured(name, near.get(name), scores.get(keys[name], 0.0)) for name in ids if name in keys]

        return self._look(collection, work, []) if ids else []

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        near = {one.id: 1 - one.cosine for one in self.search_vector(collection, vector, limit, options)}
        return [
            Match(one.id, collection, near[one.id], one.metadata, one.text)
            for one in self.get(collection, list(near), embeddings=False)
        ]

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        scores = {one.id: one.bm25 for one in self.search_words(collection, query, limit, options).found}
        return [
            Match(one.id, collection, None, one.metadata, one.text, score=scores[one.id])
            for one in self.get(collection, list(scores), embeddings=False)
        ]

    def get(self, collection: str, ids: Sequence[str], *, embeddings: bool = True) -> list[VectorRecord]:
        asked = checked_names(ids, "id")

        def work(connection: apsw.Connection, found: Collection) -> list[VectorRecord]:
            read = reading.records_with_ids(connection, found, asked, embeddings=embeddings)
            by_id = {record.id: record for record in read}
            return [by_id[name] for name in asked if name in by_id]

        return self._look(collection, work, [])

    def texts(self, collection: str, ids: Sequence[str], *, lacking: str = "") -> dict[str, str]:
        asked = checked_names(ids, "id")
        return self._look(collection, lambda c, found: reading.texts_of(c, found, asked, lacking), {})

    def ids(self, collection: str, options: SearchOptions | None = None) -> list[str]:
        asked = wanted(options)
        return self._look(collection, lambda c, found: reading.ids_of(c, found, asked), [])

    def records(self, collection: str) -> Iterator[VectorRecord]:
        """Every record by id; see `Store.records`. Read in pages: what is written meanwhile may or may not be seen."""
        checked_name(collection, "collection")
        return self._pages(collection)

    def _pages(self, collection: str) -> Iterator[VectorRecord]:
        after = ""
        while True:

            def work(c: apsw.Connection, found: Collection, after: str = after) -> list[VectorRecord]:
                return reading.records_after(c, found, after, PAGE)

            nothing: list[VectorRecord] = []
            page = self._look(collection, work, nothing)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    def collections(self) -> list[CollectionInfo]:
        with self.database.reading() as connection:
            found = rows(
                connection,
                "SELECT c.name, c.records, coalesce(m.live, 0), coalesce(s.model, ''), coalesce(s.dimensions, 0) "
                "FROM collections c LEFT JOIN spaces s ON s.id = c.space "
                "LEFT JOIN matrices m ON m.collection = c.id AND m.space = c.space "
                "WHERE c.records > 0 AND c.name IS NOT NULL ORDER BY c.name",
            )
        return [CollectionInfo(*row) for row in found]

    def put_vectors(self, collection: str, model: str, given: Sequence[NewVector]) -> set[str]:
        checked_name(model, "model")
        for one in given:
            as_vector(one.embedding, dimensions=self.dimensions)
        return self._change(collection, lambda c, found: models.put(c, found, model, given), set()) if given else set()

    def models(self, collection: str) -> list[ModelInfo]:
        return self._look(collection, models.models, [])

    def model_of(self, collection: str) -> str:
        return self._look(collection, lambda _, found: found.model, "")

    def pending(self, collection: str) -> int:
        return self._look(collection, lambda _, found: found.pending, 0)

    def missing(self, collection: str, model: str, *, after: str = "", limit: int = 1_000) -> list[str]:
        return self._look(collection, lambda c, found: models.missing(c, found, model, after, limit), [])

    def serve(self, collection: str, model: str, transaction: Transaction | None = None) -> None:
        self._change(collection, lambda c, found: models.serve(c, found, model), None, transaction)

    def discard(self, collection: str, model: str) -> int:
        return self._change(collection, lambda c, found: models.discard(c, found, model), 0)

    def check(self) -> list[str]:
        with self.database.reading() as connection:
            return list(schema.findings(connection))

    def rebuild(self) -> Rebuilt:
        with self.database.writing() as connection:
            return repair.rebuild(connection)

    def sizes(self) -> dict[str, int]:
        """Bytes of the file by what they hold: texts, vectors, codes, keywords, filters, other."""
        with self.database.reading() as connection:
            return schema.sizes(connection)

    def versions(self) -> dict[str, str]:
        """The engines behind the store: SQLite and its vector extension, as they answer themselves."""
        with self.database.reading() as connection:
            [(engine, extension)] = rows(connection, "SELECT sqlite_version(), vec_version()")
        return {"sqlite": engine, "sqlite-vec": extension}

    def close(self) -> None:
        """Let go of the file, where it was opened here. Closing twice is fine."""
        self._merger.close()
        if self._owns:
            self.database.close()

    def _look(self, collection: str, work: Callable[[apsw.Connection, Collection], T], nothing: T) -> T:
        """What the work answers about a collection; `nothing` where there is no such collection."""
        with self._catalog.reading(checked_name(collection, "collection")) as (connection, found):
            return nothing if found is None else work(connection, found)

    def _change(
        self,
        collection: str,
        work: Callable[[apsw.Connection, Collection], T],
        nothing: T,
        transaction: Transaction | None = None,
    ) -> T:
        """As `_look`, for work that writes."""
        checked_name(collection, "collection")
        with self._writing(transaction) as connection:
            found = find_collection(connection, collection)
            return nothing if found is None else work(connection, found)

    def _writing(self, transaction: Transaction | None) -> AbstractContextManager[apsw.Connection]:
        return self.database.writing() if transaction is None else nullcontext(transaction.connection)
