"""The store on LanceDB: a table for each collection, in a folder or in object storage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from homing.database import Transaction
from homing.errors import InvalidArgument, StoreError
from homing.records import Match, VectorRecord
from homing.stores.arguments import batches, checked_limit, checked_name, checked_names, checked_text
from homing.stores.filters import matches, wanted
from homing.stores.lance import reading, repair, text_search, vector_search, writing
from homing.stores.lance.catalog import Catalog, Entry
from homing.stores.lance.database import Database, Table, any_of, lookup_indexes, words_index
from homing.stores.lance.engine import Address, fault, is_gone, translated
from homing.stores.lance.reading import Found, Narrowed
from homing.stores.lance.rows import SHOWN, match_of, record_of, serving
from homing.stores.lance.text_search import Statistics, WordStatistics
from homing.stores.lance.upkeep import Limits, Upkeep
from homing.stores.store import (
    CollectionInfo,
    Measured,
    ModelInfo,
    Near,
    NewVector,
    Rebuilt,
    SearchOptions,
    Worded,
    Words,
)
from homing.text.tokens import query_terms
from homing.vectors import Vector, as_vector

T = TypeVar("T")

ATTEMPTS = 5
"""How often a read is begun again because the version it read was cleaned up meanwhile."""


class LanceStore:
    """A `Store` in a folder, or in object storage.

    Vectors are kept at unit length, exactly, and searched exactly: by a scan while they are few, later through an index
    whose candidates are compared exactly. Several processes of one machine may write at once; a read sees everything
    that was committed before it began, by whomever. A record is one row and changes in one commit. One call that writes
    to several collections is all or nothing, also when the process is killed, but somebody who reads meanwhile may see
    one collection before the other.
    """

    database: None = None
    """LanceDB has no transactions that a write could join."""

    def __init__(
        self, address: Address | str | Path, *, dimensions: int | None = None, limits: Limits | None = None
    ) -> None:
        self.tables = Database(address)
        self.dimensions = dimensions
        self._catalog = Catalog(self.tables)
        self._models: WeakKeyDictionary[Table, tuple[int, str]] = WeakKeyDictionary()
        self._words = WordStatistics()
        limits = limits or Limits()
        self._upkeep = Upkeep((*lookup_indexes(limits.lookup), words_index()), limits=limits)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the place for itself; what it is sent holds the keys that the address holds."""
        place = self.tables.address
        if place.folder is not None:
            place = replace(place, folder=place.folder.absolute())
        return partial(LanceStore, dimensions=self.dimensions), (place,)

    def write(self, records: Iterable[VectorRecord], transaction: Transaction | None = None) -> int:
        """Write records; see `Store.write`. Everything that can be worked out is, before the lock is taken."""
        _refuse(transaction)
        self.tables.check_open()
        prepared = batches(records, self.dimensions)
        if not prepared:
            return 0
        with self.tables.writing():
            written = writing.write(self._catalog, prepared)
        for table in written:
            self._upkeep.wrote(table)
        return sum(len(batch.records) for batch in prepared)

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        return self.write(records)

    def delete(self, collection: str, ids: Sequence[str], transaction: Transaction | None = None) -> int:
        _refuse(transaction)
        checked_name(collection, "collection")
        unwanted = checked_names(ids, "id")
        if not unwanted:
            self.tables.check_open()
            return 0
        with self._changing(collection) as entry:
            if entry is None:
                return 0
            return self._catalog.pinned(entry).delete(any_of("id", list(dict.fromkeys(unwanted))))

    def drop(self, collection: str) -> int:
        with self._changing(collection) as entry:
            if entry is None:
                return 0
            count = self._catalog.open(entry).count()
            self._catalog.drop(entry)
            return count

    def search_vector(
        self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
    ) -> list[Near]:
        found = self._nearest(collection, vector, limit, options, ["id"])
        return [Near(row["id"], cosine) for cosine, row in found]

    def search_words(self, collection: str, query: str, limit: int, options: SearchOptions | None = None) -> Words:
        """The records that share words with the query; see `Store.search_words`.

        In a collection of at most `text_search.TEXTS` texts everything is exact. In a larger one BM25 is LanceDB's,
        which weighs a text by those that its index had last. `mass` is an estimate then: the frequency of a word is
        that among so many texts from everywhere; of a word that those lack, it is the number of texts in `found` that
        hold it.
        """
        checked_name(collection, "collection")
        limit, terms, asked = checked_limit(limit), _terms(query), Narrowed.by(wanted(options))

        def ask(table: Table) -> Words:
            known = self._words.of(table)
            if known.held is not None and not asked:
                best = known.best(terms, limit)
                return Words(tuple(Worded(*one) for one in best), known.mass(terms, []), known.idf(1), known.texts)
            found = _worded(table, known, terms, limit, asked, ["id"])
            mass = known.mass(terms, [row["words"] for _, row in found])
            return Words(tuple(Worded(row["id"], bm25) for bm25, row in found), mass, known.idf(1), known.texts)

        return self._read(collection, ask, Words()) if limit else Words()

    def measure(
        self, collection: str, ids: Sequence[str], *, vector: Vector | None = None, query: str = ""
    ) -> list[Measured]:
        checked_name(collection, "collection")
        terms, asked = _terms(query), checked_names(ids, "id")
        row = None if vector is None else as_vector(vector, dimensions=self.dimensions)
        each = list(dict.fromkeys(asked))

        def ask(table: Table) -> list[Measured]:
            near = vector_search.measure(table, collection, row, each)
            words = text_search.measure(table, self._words.of(table), terms, each) if terms else {}
            return [Measured(name, near[name], words.get(name, 0.0)) for name in asked if name in near]

        return self._read(collection, ask, []) if asked else []

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        found = self._nearest(collection, vector, limit, options, SHOWN)
        return [match_of(row, collection, distance=1 - cosine) for cosine, row in found]

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        checked_name(collection, "collection")
        limit, terms, asked = checked_limit(limit), _terms(query), Narrowed.by(wanted(options))

        def ask(table: Table) -> list[Match]:
            found = _worded(table, self._words.of(table), terms, limit, asked, SHOWN)
            return [match_of(row, collection, score=bm25) for bm25, row in found]

        return self._read(collection, ask, []) if limit else []

    def get(self, collection: str, ids: Sequence[str], *, embeddings: bool = True) -> list[VectorRecord]:
        """The records that exist, in the order asked for; see `Store.get`. Without `embeddings` no vector is read."""
        asked = checked_names(ids, "id")

        def ask(table: Table) -> dict[str, VectorRecord]:
            held = None if embeddings else self._words.held(table)
            if held is None:
                return reading.with_ids(table, collection, asked, embeddings=embeddings)
            return {name: record_of(held[name].row, collection) for name in asked if name in held}

        found: dict[str, VectorRecord] = self._read(collection, ask, {})
        return [found[name] for name in asked if name in found]

    def texts(self, collection: str, ids: Sequence[str], *, lacking: str = "") -> dict[str, str]:
        asked = checked_names(ids, "id")
        return self._read(collection, lambda table: reading.texts_with_ids(table, asked, lacking), {})

    def ids(self, collection: str, options: SearchOptions | None = None) -> list[str]:
        conditions = wanted(options)

        def ask(table: Table) -> list[str]:
            held = self._words.of(table).held if conditions else None
            if held is None:
                return reading.ids_of(table, Narrowed.by(conditions))
            return sorted(name for name, one in held.items() if matches(conditions, json.loads(one.row["metadata"])))

        return self._read(collection, ask, [])

    def records(self, collection: str) -> Iterator[VectorRecord]:
        """Every record by id; see `Store.records`. As of one commit, unless it is cleaned up while it is being read."""
        checked_name(collection, "collection")
        self.tables.check_open()
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
            except (StoreError, RuntimeError, ValueError, OSError) as error:
                self._check_gone(error, attempt)

    def collections(self) -> list[CollectionInfo]:
        names = sorted(name for name, entry in self._catalog.entries().items() if entry.visible)
        found = [self._read(name, partial(_counted, name), None) for name in names]
        return [info for info in found if info is not None and info.records]

    def put_vectors(self, collection: str, model: str, vectors: Sequence[NewVector]) -> set[str]:
        """Give records vectors of a model; see `Store.put_vectors`. One that has such a vector is passed over, too."""
        checked_name(collection, "collection")
        checked_name(model, "model")
        self.tables.check_open()
        if not vectors:
            return set()
        width = self.dimensions or len(vectors[0].embedding)
        given = [replace(one, embedding=as_vector(one.embedding, dimensions=width)) for one in vectors]
        with self._changing(collection) as entry:
            return set() if entry is None else writing.put(self._catalog, entry, model, given)

    def models(self, collection: str) -> list[ModelInfo]:
        return self._read(collection, reading.models, [])

    def model_of(self, collection: str) -> str:
        return self._read(collection, self._model, "")

    def _model(self, table: Table) -> str:
        version = table.version
        seen, model = self._models.get(table, (-1, ""))
        if seen != version:
            model = reading.served_model(table)
            self._models[table] = (version, model)
        return model

    def pending(self, collection: str) -> int:
        """How many records wait for their vector; see `Store.pending`. Costs a count of the rows."""
        return self._read(collection, reading.pending, 0)

    def missing(self, collection: str, model: str, *, after: str = "", limit: int = 1_000) -> list[str]:
        checked_name(collection, "collection")
        checked_text(after, "the last id")
        limit = checked_limit(limit)
        return self._read(collection, lambda table: reading.missing(table, model, after, limit), []) if limit else []

    def serve(self, collection: str, model: str, transaction: Transaction | None = None) -> None:
        _refuse(transaction)
        with self._changing(collection) as entry:
            if entry is not None:
                writing.serve(self._catalog.pinned(entry), collection, model)

    def discard(self, collection: str, model: str) -> int:
        with self._changing(collection) as entry:
            return 0 if entry is None else writing.discard(self._catalog.pinned(entry), collection, model)

    def check(self) -> list[str]:
        """What is wrong inside the store, a sentence each; see `Store.check`. Reads everything."""
        return list(reading.findings(self._catalog))

    def rebuild(self) -> Rebuilt:
        done = []
        for name, entry in sorted(self._catalog.entries().items()):
            if not entry.visible:
                continue
            with self._changing(name) as found:
                done.append(Rebuilt(0, 0) if found is None else repair.rebuild(self._catalog, found))
            if (table := self._catalog.table(name)) is not None:
                self._upkeep.rebuild(table)
        return Rebuilt(sum(one.texts for one in done), sum(one.vectors_removed for one in done))

    def close(self) -> None:
        """Finish merging and indexing what is due, then let go. Closing twice is fine."""
        self._upkeep.close()
        self.tables.close()

    def _nearest(
        self, collection: str, vector: Vector, limit: int, options: SearchOptions | None, columns: list[str]
    ) -> list[Found]:
        checked_name(collection, "collection")
        query, limit = as_vector(vector, dimensions=self.dimensions), checked_limit(limit)
        asked = Narrowed.by(wanted(options))
        model = options.model if options is not None else ""

        def ask(table: Table) -> list[Found]:
            return asked.filled(
                lambda reach: vector_search.search(
                    table, collection, query, reach, asked.condition, model, asked.columns(columns)
                ),
                limit,
            )

        return self._read(collection, ask, []) if limit else []

    @contextmanager
    def _changing(self, collection: str) -> Iterator[Entry | None]:
        """A collection that nobody else writes to meanwhile; afterwards its table is looked after."""
        checked_name(collection, "collection")
        with self.tables.writing(), translated(self.tables.address):
            entry = self._catalog.settle([collection]).get(collection)
            yield entry
        if entry is not None:
            table = self._catalog.table(collection)
            self._upkeep.wrote((table or self.tables.mark).pinned())

    def _read(self, collection: str, ask: Callable[[Table], T], nothing: T) -> T:
        """Ask a collection's table. What was cleaned up or dropped meanwhile is looked up again."""
        checked_name(collection, "collection")
        for attempt in range(ATTEMPTS):
            table = self._catalog.table(collection)
            if table is None:
                return nothing
            try:
                return ask(table)
            except (StoreError, RuntimeError, ValueError, OSError) as error:
                self._check_gone(error, attempt)
        raise AssertionError("unreachable")

    def _check_gone(self, error: Exception, attempt: int) -> None:
        """Raises an error, unless what was read went away meanwhile and can be looked up again."""
        if attempt < ATTEMPTS - 1 and is_gone(error):
            return
        if isinstance(error, StoreError):
            raise error
        raise fault(self.tables.address, error) from error


def _refuse(transaction: Transaction | None) -> None:
    if transaction is not None:
        raise InvalidArgument(
            "LanceDB cannot join a transaction: a record is a commit of its own there; call without one, "
            "or keep the records in SQLite or PostgreSQL"
        )


def _worded(
    table: Table, known: Statistics, terms: list[str], limit: int, asked: Narrowed, columns: list[str]
) -> list[Found]:
    return asked.filled(
        lambda reach: text_search.search(table, known, terms, reach, asked.condition, asked.columns(columns)), limit
    )


def _terms(query: str) -> list[str]:
    return query_terms(checked_text(query, "a query"))


def _counted(name: str, table: Table) -> CollectionInfo | None:
    space = serving(table.schema)
    records = table.handle.count_rows()
    embedded = table.handle.count_rows(space.held) if space is not None else 0
    if space is None or not embedded:
        return CollectionInfo(name, records, 0, "", 0)
    return CollectionInfo(name, records, embedded, space.model, space.dimensions)
