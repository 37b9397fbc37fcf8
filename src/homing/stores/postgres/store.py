"""Records in PostgreSQL: vectors by pgvector, an own keyword index beside them, everything in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from homing.database import Transaction
from homing.database.postgres.database import PostgresDatabase
from homing.database.postgres.driver import Address, Connection
from homing.database.postgres.pool import STATEMENT_TIMEOUT
from homing.database.postgres.schema import enable_row_security
from homing.database.postgres.sessions import T, Work
from homing.errors import InvalidArgument, StoreError
from homing.records import KeywordMatch, Match, VectorRecord
from homing.stores.arguments import (
    batches,
    check_query,
    checked_limit,
    checked_name,
    checked_names,
    checked_text,
    checked_user,
)
from homing.stores.filters import wanted
from homing.stores.postgres import checkup, reading, repair, vector_search, words, writing
from homing.stores.postgres.collection import (
    Collection,
    CollectionCache,
    SpaceMissing,
    checked_model,
    create_space,
    find,
    listed,
)
from homing.stores.postgres.indexing import Indexing
from homing.stores.postgres.reading import SHOWN, match
from homing.stores.postgres.schema import COMPONENT, STEPS
from homing.stores.postings.index import Index
from homing.stores.postings.tables import Merger
from homing.stores.store import CollectionInfo, Measured, ModelInfo, Near, NewVector, Rebuilt, SearchOptions, Words
from homing.vectors import Vector, as_vector

PAGE = 500


class PostgresStore:
    """A `Store` in a PostgreSQL database with pgvector: that of an address, or one that is open already.

    Searches up to some thousands of vectors compare every one; beyond that an index is built in the background and
    used where it is faster (`build_indexes` waits for it, and so does closing the store that wrote them).

    A database that was given is left open when the store is closed, and `read_url`, `schema` and `statement_timeout`
    are its own. `for_user` gives the store of one user. `row_security` makes the server keep users apart as well; see
    `database.postgres.schema`.
    """

    def __init__(
        self,
        database: str | PostgresDatabase,
        *,
        read_url: str | None = None,
        schema: str = "homing",
        statement_timeout: float | None = STATEMENT_TIMEOUT,
        dimensions: int | None = None,
        row_security: bool = False,
    ) -> None:
        self._owns = not isinstance(database, PostgresDatabase)
        if not isinstance(database, PostgresDatabase):
            database = PostgresDatabase(database, read_url=read_url, schema=schema, statement_timeout=statement_timeout)
        self.database = database
        self.user_id = database.user_id
        self.dimensions = dimensions
        self._closed = self._is_view = False
        self._seen = CollectionCache()
        self._indexing = Indexing(database)
        self.loading = self._indexing.paused
        self._words = Index()
        self._merger = Merger(partial(words.merge, database.sessions))
        try:
            database.migrate(COMPONENT, STEPS)
            if row_security:
                database.sessions.write(lambda c: enable_row_security(c, database.schema))
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        whose = f", user {self.user_id!r}" if self.user_id else ""
        return f"<PostgresStore {self.address}, schema {self.schema!r}{whose}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens its own connections to the same place; what it is sent holds the password."""
        return _reopened, (self.database, self.dimensions)

    @property
    def address(self) -> Address:
        """Where the server is."""
        return self.database.address

    @property
    def schema(self) -> str:
        """The schema of the tables."""
        return self.database.schema

    def for_user(self, user_id: str | int) -> PostgresStore:
        """The store of one user: what is written through it is that user's, and nothing else can be reached by it.

        Users do not share collections or ids; `1` and `"1"` are the same user. Closing it leaves this store open.
        """
        if self.user_id:
            raise InvalidArgument(f"this is the store of user {self.user_id!r}; ask the store it came from")
        user = checked_user(user_id)
        view = object.__new__(PostgresStore)
        view.__dict__ |= self.__dict__ | {"user_id": user, "database": self.database.for_user(user), "_is_view": True}
        return view

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        return self.write(records)

    def write(self, records: Iterable[VectorRecord], transaction: Transaction | None = None) -> int:
        """Write records; see `Store.write`. Inside a transaction, vectors must be of a model that the store knows."""
        prepared = [writing.prepare(batch) for batch in batches(records, self.dimensions)]
        if not prepared:
            return 0

        def work(connection: Connection) -> list[tuple[Collection, bool]]:
            return [writing.write(connection, self.user_id, one) for one in prepared]

        if transaction is not None:
            self._check_open()
            try:
                written = work(transaction.connection)
            except SpaceMissing as missing:
                raise StoreError(
                    f"there are no vectors of {missing.model!r} in this database yet, and the table for them cannot be "
                    "made inside a transaction; write the text without its vector, then put the vector"
                ) from missing
        else:
            written = self._write_vectors(work)
            for one, (where, _) in zip(prepared, written, strict=True):
                if one.batch.embedded and not where.indexed:
                    self._indexing.written(where.space_rows + len(one.batch.embedded))
        for where, due in written:
            if due:
                self._merger.wake((self.user_id, where.id))
        return sum(len(one.batch.records) for one in prepared)

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        found = self._nearest(collection, vector, limit, options, SHOWN)
        return [match(collection, columns, distance=1 - cosine) for cosine, *columns in found]

    def search_vector(
        self, collection: str, vector: Vector, limit: int, options: SearchOptions | None = None
    ) -> list[Near]:
        return [Near(name, cosine) for cosine, name in self._nearest(collection, vector, limit, options, "r.id")]

    def _nearest(
        self, collection: str, vector: Vector, limit: int, options: SearchOptions | None, shown: str
    ) -> list[vector_search.Row]:
        name = checked_name(collection, "collection")
        query, limit, asked = as_vector(vector, dimensions=self.dimensions), checked_limit(limit), wanted(options)
        model = options.model if options is not None else ""

        def work(connection: Connection) -> list[vector_search.Row]:
            known = self._seen.get(self.user_id, name)
            if known is not None:
                # Nothing found, or refused: it may be because what was remembered is no longer so.
                with suppress(vector_search.CollectionChanged, StoreError, InvalidArgument):
                    check_query(name, known.model, known.dimensions, query.size, model)
                    if found := vector_search.search(connection, known, query, limit, asked, shown):
                        return found
            while True:
                where = find(connection, self.user_id, name)
                if where is None or where.space is None or not where.embedded:
                    return []
                check_query(name, where.model, where.dimensions, query.size, model)
                self._seen.keep(where)
                if not where.indexed:
                    self._indexing.missed(where.space_rows)
                # It may have changed its model, or been made anew, since it was looked up a moment ago.
                with suppress(vector_search.CollectionChanged):
                    return vector_search.search(connection, where, query, limit, asked, shown)

        return self._read(work) if limit else []

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        if not checked_limit(limit):
            return []
        found = self._worded(collection, query, limit, options, SHOWN)
        return [match(collection, columns, score=score) for score, *columns in found.rows] if found else []

    def search_words(self, collection: str, query: str, limit: int, options: SearchOptions | None = None) -> Words:
        found = self._worded(collection, query, limit, options, "r.id")
        return Words() if found is None else found.as_words()

    def _worded(
        self, collection: str, query: str, limit: int, options: SearchOptions | None, shown: str
    ) -> words.Relevant | None:
        checked_text(query, "a query")
        limit, asked = checked_limit(limit), wanted(options)

        def work(connection: Connection, where: Collection) -> words.Relevant:
            return words.search(connection, where, query, limit, asked, shown, self._words)

        return self._of(collection, work, snapshot=True)

    def search_keywords(
        self, collection: str, keywords: Sequence[str], limit: int = 10, options: SearchOptions | None = None
    ) -> list[KeywordMatch]:
        """The records that contain most of the keywords, by how many (`score`), then how rare, then id."""
        for keyword in keywords:
            checked_text(keyword, "a keyword")
        limit, asked = checked_limit(limit), wanted(options)

        def work(connection: Connection, where: Collection) -> list[KeywordMatch]:
            return words.search_keywords(connection, where, keywords, limit, asked, self._words)

        return (self._of(collection, work, snapshot=True) if limit else None) or []

    def measure(
        self, collection: str, ids: Sequence[str], *, vector: Vector | None = None, query: str = ""
    ) -> list[Measured]:
        asked = checked_names(ids, "id")
        checked_text(query, "a query")
        near = None if vector is None else as_vector(vector, dimensions=self.dimensions)

        def work(connection: Connection, where: Collection) -> list[Measured]:
            if near is not None and where.embedded:
                check_query(collection, where.model, where.dimensions, near.size)
            cosines = vector_search.cosines(connection, where, near, asked)
            relevance = words.relevance(connection, where, query, list(cosines), self._words) if cosines else {}
            return [Measured(one, cosines[one], relevance.get(one, 0.0)) for one in asked if one in cosines]

        return self._of(collection, work, snapshot=True) or []

    def get(self, collection: str, ids: Sequence[str], *, embeddings: bool = True) -> list[VectorRecord]:
        asked = checked_names(ids, "id")
        found = (
            self._of(collection, lambda c, where: reading.records_with_ids(c, where, asked, embeddings=embeddings))
            or []
        )
        by_id = {one.id: one for one in found}
        return [by_id[one] for one in asked if one in by_id]

    def texts(self, collection: str, ids: Sequence[str], *, lacking: str = "") -> dict[str, str]:
        asked = checked_names(ids, "id")
        return self._of(collection, lambda c, where: reading.texts(c, where, asked, lacking)) or {}

    def ids(self, collection: str, options: SearchOptions | None = None) -> list[str]:
        asked = wanted(options)
        return self._of(collection, lambda c, where: reading.ids_of(c, where, asked)) or []

    def records(self, collection: str) -> Iterator[VectorRecord]:
        """Every record by id; see `Store.records`. Read in pages: what is written meanwhile may or may not be seen."""
        return self._pages(checked_name(collection, "collection"))

    def _pages(self, name: str) -> Iterator[VectorRecord]:
        after = ""
        while True:
            page = self._of(name, partial(reading.records_after, after=after, count=PAGE)) or []
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    def delete(self, collection: str, ids: Sequence[str], transaction: Transaction | None = None) -> int:
        name = checked_name(collection, "collection")
        unwanted = sorted(set(checked_names(ids, "id")))
        if not unwanted:
            return 0
        return self._write(lambda c: writing.delete(c, self.user_id, name, unwanted), transaction)

    def drop(self, collection: str) -> int:
        return self._write(lambda c: writing.drop(c, self.user_id, checked_name(collection, "collection")))

    def collections(self) -> list[CollectionInfo]:
        return self._read(lambda c: listed(c, self.user_id))

    def put_vectors(self, collection: str, model: str, vectors: Sequence[NewVector]) -> set[str]:
        name = checked_name(collection, "collection")
        checked_name(model, "model")
        hashes = {one.id: one.hash for one in vectors}
        if not hashes:
            return set()
        [batch] = batches((VectorRecord(one.id, name, one.embedding, model=model) for one in vectors), self.dimensions)
        if len(batch.embedded) < len(hashes):
            raise InvalidArgument("a vector to put is a row of numbers; got None")
        checked_model(model, int(batch.vectors.shape[1]))
        written, space = self._write_vectors(lambda c: writing.put(c, self.user_id, batch, hashes))
        if space is not None and not space.indexed:
            self._indexing.written(space.rows + len(written))
        return written

    def models(self, collection: str) -> list[ModelInfo]:
        return self._of(collection, reading.models, snapshot=True) or []

    def model_of(self, collection: str) -> str:
        """The model that serves a collection; see `Store.model_of`. One question to the server."""
        return self._of(collection, lambda _, where: where.model if where.embedded else "") or ""

    def pending(self, collection: str) -> int:
        """How many records wait for their vector; see `Store.pending`. One question to the server."""
        return self._of(collection, lambda _, where: where.records - where.embedded) or 0

    def missing(self, collection: str, model: str, *, after: str = "", limit: int = 1_000) -> list[str]:
        checked_name(model, "model")
        checked_limit(limit)
        return self._of(collection, lambda c, where: reading.missing(c, where, model, after, limit)) or []

    def serve(self, collection: str, model: str, transaction: Transaction | None = None) -> None:
        name = checked_name(collection, "collection")
        self._write(lambda c: writing.serve(c, self.user_id, name, model), transaction)

    def discard(self, collection: str, model: str) -> int:
        return self._write(lambda c: writing.discard(c, self.user_id, checked_name(collection, "collection"), model))

    def check(self) -> list[str]:
        return self._read(lambda c: list(checkup.findings(c, self.user_id)), snapshot=True)

    def rebuild(self) -> Rebuilt:
        """Make what is derived anew; see `Store.rebuild`. Indexes, which are everybody's, by the whole store only."""
        names = self._write(partial(repair.names, user=self.user_id, remake=not self._is_view))
        done = [self._write(partial(repair.rebuild, user=self.user_id, name=name)) for name in names]
        if not self._is_view:
            self._indexing.rebuild()
        return Rebuilt(sum(one.texts for one in done), sum(one.vectors_removed for one in done))

    def build_indexes(self) -> None:
        """Build now the vector indexes that are due, which otherwise happens in the background, and wait for them."""
        self._check_open()
        self._indexing.build()

    def close(self) -> None:
        """Finish an index that our own writes have made due, then let go of the server.

        Closing twice is fine. Closing a user's store closes nothing else.
        """
        self._closed = True
        if not self._is_view:
            self._merger.close()
            self._indexing.close()
            if self._owns:
                self.database.close()

    def _of(self, collection: str, work: Callable[[Connection, Collection], T], *, snapshot: bool = False) -> T | None:
        """What the work answers about a collection; None where there is none."""
        name = checked_name(collection, "collection")

        def found(connection: Connection) -> T | None:
            where = find(connection, self.user_id, name)
            return None if where is None else work(connection, where)

        return self._read(found, snapshot=snapshot)

    def _read(self, work: Work[T], *, snapshot: bool = False) -> T:
        self._check_open()
        return self.database.sessions.read(work, self.user_id, snapshot=snapshot)

    def _write(self, work: Work[T], transaction: Transaction | None = None) -> T:
        self._check_open()
        if transaction is not None:
            return work(transaction.connection)
        return self.database.sessions.write(work, self.user_id)

    def _write_vectors(self, work: Work[T]) -> T:
        while True:
            try:
                return self._write(work)
            except SpaceMissing as missing:
                self.database.sessions.write(partial(create_space, self.schema, missing.model, missing.dimensions))

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.address}: this store is closed; open it again")
        self.database.check_open()


def _reopened(database: PostgresDatabase, dimensions: int | None) -> PostgresStore:
    store = PostgresStore(database, dimensions=dimensions)
    # What was opened to receive the store is closed with it.
    store._owns = True
    return store
