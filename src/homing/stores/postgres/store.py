"""Records in PostgreSQL: vectors by pgvector, keywords by an array index, everything in one transaction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from homing.errors import InvalidArgument, StoreError
from homing.records import KeywordMatch, Match, VectorRecord
from homing.stores.arguments import (
    checked_limit,
    checked_name,
    checked_names,
    checked_space,
    checked_text,
)
from homing.stores.attributes import wanted
from homing.stores.batches import batches
from homing.stores.postgres import checkup, keyword_search, switching, text_search, vector_search, writing
from homing.stores.postgres.address import Address
from homing.stores.postgres.collection import Collection, find, listed
from homing.stores.postgres.driver import Connection, connect, psycopg
from homing.stores.postgres.faults import fault
from homing.stores.postgres.fence import raise_fence
from homing.stores.postgres.indexing import Indexing
from homing.stores.postgres.matches import ids_of, records_after, records_with_ids
from homing.stores.postgres.migrations import checked_schema, migrate, search_path
from homing.stores.postgres.sessions import Sessions, T, Work
from homing.stores.postgres.spaces import check_query, checked_model, create_space
from homing.stores.postgres.vector_type import register
from homing.stores.store import CollectionInfo, SearchOptions
from homing.stores.switching import SpaceInfo
from homing.stores.users import checked_user
from homing.vectors import Vector, as_vector

STATEMENT_TIMEOUT = 30.0
"""Seconds that the server works on one statement before it gives up."""
PAGE = 500
REMEMBERED = 1.0
"""Seconds for which a collection need not be looked up again. Whether it is still the same is checked all the same."""


class PostgresStore:
    """A `Store` on a PostgreSQL server with pgvector.

    Searches up to some thousands of vectors compare every one; beyond that an index is built in the background and
    used where it is faster (`build_indexes` waits for it, and so does closing the store that wrote them). With
    `read_url`, a replica answers the reads, except while it has not seen yet what this store has written.

    The server may be restarted at any time: calls meanwhile raise StoreUnavailable, nothing that was acknowledged is
    lost, and afterwards the same store works on.

    `for_user` gives the store of one user. `row_security` makes the server keep users apart as well; see fence.py.
    """

    def __init__(
        self,
        url: str,
        *,
        read_url: str | None = None,
        schema: str = "homing",
        statement_timeout: float | None = STATEMENT_TIMEOUT,
        dimensions: int | None = None,
        row_security: bool = False,
    ) -> None:
        self.address = Address(url)
        self.schema = checked_schema(schema)
        self.dimensions = dimensions
        self.user_id = ""
        self._timeout = _checked_timeout(statement_timeout)
        self._closed = False
        self._holds = True
        self._seen: dict[tuple[str, str], tuple[float, Collection]] = {}
        self._replica = None if read_url is None else Address(read_url)
        self._sessions = Sessions(self.address, self._replica, self._configure)
        self._indexing = Indexing(self._sessions, self.schema)
        self._open(row_security)

    def __repr__(self) -> str:
        whose = f", user {self.user_id!r}" if self.user_id else ""
        return f"<PostgresStore {self.address}, schema {self.schema!r}{whose}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens its own connections to the same place; what it is sent holds the password."""
        replica = None if self._replica is None else self._replica.url
        options = {"read_url": replica, "schema": self.schema, "dimensions": self.dimensions}
        return _opened, (self.address.url, self.user_id, options | {"statement_timeout": self._timeout / 1000 or None})

    def for_user(self, user_id: str | int) -> PostgresStore:
        """The store of one user: what is written through it is that user's, and nothing else can be reached by it.

        Users do not share collections or ids; `1` and `"1"` are the same user. Closing it leaves this store open.
        """
        if self.user_id:
            raise InvalidArgument(f"this is the store of user {self.user_id!r}; ask the store it came from")
        view = object.__new__(PostgresStore)
        view.__dict__ |= self.__dict__ | {"user_id": checked_user(user_id), "_holds": False}
        return view

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        """Write records; see `Store.upsert`."""
        prepared = [writing.prepare(batch) for batch in batches(records, self.dimensions)]
        if not prepared:
            return 0
        while True:
            try:
                written = self._write(lambda c: [writing.upsert(c, self.user_id, one) for one in prepared])
                break
            except writing.SpaceMissing as missing:
                self._create_space(missing)
        for one, where in zip(prepared, written, strict=True):
            if one.batch.embedded and not where.indexed:
                self._indexing.written(where.space_rows + len(one.batch.embedded))
        return sum(len(one.batch.records) for one in prepared)

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The nearest records; see `Store.search`."""
        name = checked_name(collection, "collection")
        query, limit, asked = as_vector(vector, dimensions=self.dimensions), checked_limit(limit), wanted(options)
        model = options.model if options is not None else ""
        if not limit:
            return []

        def work(connection: Connection) -> list[Match]:
            known = self._remembered(name)
            if known is not None:
                try:
                    check_query(known, query.size, model)
                    found = vector_search.search(connection, known, query, limit, asked)
                except (vector_search.Moved, StoreError, InvalidArgument):
                    found = []
                # Nothing found, or refused: it may be because what was remembered is no longer so.
                if found:
                    return found
            while True:
                where = find(connection, self.user_id, name)
                if where is None or where.space is None or not where.embedded:
                    return []
                check_query(where, query.size, model)
                self._remember(name, where)
                if not where.indexed:
                    self._indexing.missed(where.space_rows)
                try:
                    return vector_search.search(connection, where, query, limit, asked)
                except vector_search.Moved:
                    # It has changed its model, or was made anew, since it was looked up a moment ago.
                    continue

        return self._read(work)

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The records that share words with the query; see `Store.search_text`."""
        name = checked_name(collection, "collection")
        checked_text(query, "a query")
        limit, asked = checked_limit(limit), wanted(options)
        if not limit:
            return []

        def work(connection: Connection) -> list[Match]:
            where = find(connection, self.user_id, name)
            return [] if where is None else text_search.search(connection, where, query, limit, asked)

        return self._read(work)

    def search_keywords(
        self, collection: str, keywords: Sequence[str], limit: int = 10, options: SearchOptions | None = None
    ) -> list[KeywordMatch]:
        """The records that contain most of the keywords, by how many (`score`), then how rare, then id."""
        name = checked_name(collection, "collection")
        for keyword in keywords:
            checked_text(keyword, "a keyword")
        limit, asked = checked_limit(limit), wanted(options)
        if not limit:
            return []

        def work(connection: Connection) -> list[KeywordMatch]:
            where = find(connection, self.user_id, name)
            return [] if where is None else keyword_search.search(connection, where, keywords, limit, asked)

        return self._read(work)

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        """The records that exist, in the order asked for; see `Store.get`."""
        name = checked_name(collection, "collection")
        asked = checked_names(ids, "id")

        def work(connection: Connection) -> list[VectorRecord]:
            where = find(connection, self.user_id, name)
            return [] if where is None else records_with_ids(connection, where, asked)

        by_id = {record.id: record for record in self._read(work)}
        return [by_id[one] for one in asked if one in by_id]

    def ids(self, collection: str) -> list[str]:
        """Every id in order; see `Store.ids`."""
        name = checked_name(collection, "collection")
        return self._read(lambda c: [] if (found := find(c, self.user_id, name)) is None else ids_of(c, found))

    def records(self, collection: str) -> Iterator[VectorRecord]:
        """Every record by id; see `Store.records`. Read in pages: what is written meanwhile may or may not be seen."""
        return self._pages(checked_name(collection, "collection"))

    def _pages(self, name: str) -> Iterator[VectorRecord]:
        after = ""
        while True:

            def work(connection: Connection, after: str = after) -> list[VectorRecord]:
                where = find(connection, self.user_id, name)
                return [] if where is None else records_after(connection, where, after, PAGE)

            page = self._read(work)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Remove records everywhere; see `Store.delete`."""
        name = checked_name(collection, "collection")
        unwanted = sorted(set(checked_names(ids, "id")))
        return self._write(lambda c: writing.delete(c, self.user_id, name, unwanted)) if unwanted else 0

    def drop(self, collection: str) -> int:
        """Remove a collection; see `Store.drop`."""
        name = checked_name(collection, "collection")
        return self._write(lambda c: writing.drop(c, self.user_id, name))

    def collections(self) -> list[CollectionInfo]:
        """The collections that have records; see `Store.collections`."""
        return self._read(lambda c: listed(c, self.user_id))

    def model_of(self, collection: str) -> str:
        """The model that answers; see `SwitchesModels.model_of`. One question to the server."""
        name = checked_name(collection, "collection")
        found = self._read(lambda c: find(c, self.user_id, name))
        return found.model if found is not None and found.embedded else ""

    def spaces(self, collection: str) -> list[SpaceInfo]:
        """The models whose vectors are held; see `SwitchesModels.spaces`."""
        name = checked_name(collection, "collection")

        def work(connection: Connection) -> list[SpaceInfo]:
            where = find(connection, self.user_id, name)
            return [] if where is None else [one.info for one in switching.spaces(connection, where)]

        return self._read(work)

    def stage(self, collection: str, model: str, dimensions: int) -> None:
        """Make room for a second model; see `SwitchesModels.stage`."""
        name = checked_name(collection, "collection")
        checked_space(model, dimensions, self.dimensions)
        checked_model(model, dimensions)

        def work(connection: Connection) -> None:
            where = find(connection, self.user_id, name, lock=switching.ALONE)
            if where is not None:
                switching.stage(connection, where, model, dimensions)

        while True:
            try:
                return self._write(work)
            except writing.SpaceMissing as missing:
                self._create_space(missing)

    def missing(self, collection: str, model: str) -> Iterator[VectorRecord]:
        """What lacks a vector of this model; see `SwitchesModels.missing`. Read in pages, like `records`."""
        return self._missing_pages(checked_name(collection, "collection"), model)

    def _missing_pages(self, name: str, model: str) -> Iterator[VectorRecord]:
        after = -1
        while True:

            def work(connection: Connection, after: int = after) -> tuple[list[VectorRecord], int]:
                where = find(connection, self.user_id, name)
                return ([], after) if where is None else switching.missing(connection, where, model, after, PAGE)

            page, after = self._read(work)
            yield from page
            if len(page) < PAGE:
                return

    def add_vectors(self, records: Iterable[VectorRecord]) -> int:
        """Give records a vector of a second model; see `SwitchesModels.add_vectors`."""
        prepared = batches(records, self.dimensions)
        if not prepared:
            return 0
        return self._write(lambda c: sum(switching.add(c, self.user_id, batch) for batch in prepared))

    def activate(self, collection: str, model: str, *, complete: bool = True) -> int:
        """Let a model's vectors answer; see `SwitchesModels.activate`."""
        name = checked_name(collection, "collection")

        def work(connection: Connection) -> int:
            if find(connection, self.user_id, name, lock=switching.ALONE) is None:
                return 0
            # Counted anew: writers that were waited for have written since the question above was begun.
            where = find(connection, self.user_id, name)
            return 0 if where is None else switching.activate(connection, where, model, complete=complete)

        return self._write(work)

    def discard(self, collection: str, model: str) -> int:
        """Let go of a model's vectors; see `SwitchesModels.discard`."""
        name = checked_name(collection, "collection")

        def work(connection: Connection) -> int:
            where = find(connection, self.user_id, name, lock=switching.ALONE)
            return 0 if where is None else switching.discard(connection, where, model)

        return self._write(work)

    def check(self) -> list[str]:
        """What is wrong inside the store, a sentence each; see `Store.check`."""
        return self._write(lambda c: list(checkup.findings(c, self.user_id)))

    def build_indexes(self) -> None:
        """Build now the vector indexes that are due, which otherwise happens in the background, and wait for them."""
        self._check_open()
        self._indexing.build()

    def close(self) -> None:
        """Finish an index that our own writes have made due, then let go of the server.

        Closing twice is fine. Closing a user's store closes nothing else.
        """
        self._closed = True
        if self._holds:
            self._indexing.close()
            self._sessions.close()

    def _read(self, work: Work[T]) -> T:
        self._check_open()
        return self._sessions.read(work, self.user_id)

    def _write(self, work: Work[T]) -> T:
        self._check_open()
        return self._sessions.write(work, self.user_id)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.address}: this store is closed; open it again")

    def _create_space(self, missing: writing.SpaceMissing) -> None:
        self._sessions.alone(lambda c: create_space(c, self.schema, missing.model, missing.dimensions))

    def _remembered(self, name: str) -> Collection | None:
        until, found = self._seen.get((self.user_id, name), (0.0, None))
        return found if time.monotonic() < until else None

    def _remember(self, name: str, found: Collection) -> None:
        if len(self._seen) >= 1_000:
            self._seen.clear()
        self._seen[self.user_id, name] = (time.monotonic() + REMEMBERED, found)

    def _open(self, row_security: bool) -> None:
        try:
            with connect(self.address.dsn) as connection:
                migrate(connection, self.schema)
                if row_security:
                    self._configure(connection)
                    raise_fence(connection, self.schema)
        except psycopg.Error as error:
            raise fault(self.address, error) from error

    def _configure(self, connection: Connection) -> None:
        """Settings of one session, and the type `vector`, whose number differs from database to database."""
        row = connection.execute(
            "SELECT set_config('search_path', %s, false), set_config('statement_timeout', %s, false), "
            "set_config('hnsw.iterative_scan', 'relaxed_order', false), set_config('hnsw.ef_search', %s, false), "
            # The planner takes an index page for four times as dear as it is where it is in memory or on flash, and
            # would compare thousands of vectors, each cast to half precision, rather than look into the index.
            "set_config('random_page_cost', '1.1', false), set_config('jit', 'off', false), "
            "(SELECT t.oid FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace "
            "WHERE e.extname = 'vector' AND t.typname = 'vector')",
            (search_path(connection, self.schema), str(self._timeout), str(vector_search.EF_SEARCH)),
        ).fetchone()
        assert row is not None
        register(connection, row[-1])


def _opened(url: str, user_id: str, options: dict[str, Any]) -> PostgresStore:
    store = PostgresStore(url, **options)
    # A view that arrives without the store it came from closes what it uses.
    store.user_id = user_id
    return store


def _checked_timeout(seconds: float | None) -> int:
    """Milliseconds, as the server counts; 0 is no limit."""
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 86_400:
        raise InvalidArgument(f"statement_timeout is seconds, up to a day, or None; got {seconds!r}")
    return max(1, round(seconds * 1000))
