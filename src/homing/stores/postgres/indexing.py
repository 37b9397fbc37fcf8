"""Vector indexes, built in the background when a space has grown large enough to need one.

Rows are far cheaper to write without the index, and building it once over many rows is far cheaper than growing it row
by row. So the builder waits for a pause between writes, though not for ever, and builds without locking anybody out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from homing.database.postgres.database import PostgresDatabase
from homing.database.postgres.driver import Connection, psycopg, sql
from homing.database.postgres.schema import lock_number
from homing.errors import HomingError, StoreError
from homing.stores.postgres.collection import rows_in
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.vector_search import WIDEST_INDEXED

logger = logging.getLogger(__name__)

WORTHWHILE = 8_000
"""Vectors of one model from which on an index pays: comparing fewer takes about as long as looking into it."""
PAUSE = 2.0
"""Seconds without a write after which an index is built."""
PATIENCE = 120.0
"""Seconds after which it is built though writes go on."""
GRAPH = "m = 24, ef_construction = 100"
"""Denser than pgvector's default: questions are unlike the texts that answer them, and a sparse graph loses its way.

Twice the `ef_construction` takes twice as long to build; a wider view while searching (EF_SEARCH) gains as much."""
RETRY = 60.0
"""Seconds after which a search that misses an index asks for it again."""
LEAST_MB = 64
"""The least memory that a build asks the server for, which is what it would have without asking."""
NODE_BYTES = 1_000
"""What a vector costs a build beside its halves: pgvector's 128 and 16 for each of 2 m neighbours, and some to spare.

A graph that outgrows its memory goes on to be built on disk, row by row, which takes many times as long."""

# Out of disk is also what a server says that is out of shared memory.
_NO_ROOM = ("53100", "53200")
# Those of vectors are built by `build`, which gives the server the memory that they need.
_INDEXES = (
    "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_am a ON a.oid = c.relam "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'i' AND n.nspname = %s AND a.amname <> 'hnsw' "
    "ORDER BY 1"
)


class Indexing:
    """Builds the indexes of one schema; one process at a time does."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._last_write = 0.0
        self._last_missed = -RETRY
        self._owed = False
        self._closing = False
        self._paused = 0
        self._thread: threading.Thread | None = None
        self._building: Connection | None = None

    def written(self, space_rows: int) -> None:
        """Vectors were written to a space without an index, which now holds about so many."""
        if space_rows >= WORTHWHILE and not self._paused:
            with self._changed:
                self._last_write = time.monotonic()
                self._owed = True
                self._begin()

    def missed(self, space_rows: int) -> None:
        """A search found no index in a space that holds about so many: whoever wrote them did not get to build it."""
        if space_rows >= WORTHWHILE and time.monotonic() - self._last_missed > RETRY:
            with self._changed:
                self._last_missed = self._last_write = time.monotonic()
                self._begin()

    def build(self) -> None:
        """Build now what is due, and return when it is there."""
        lock = lock_number(self._database.schema, "index")
        for space, dimensions, rows, most in self._database.sessions.read(_due, fresh=True):
            build = partial(self._build, int(space), int(dimensions))
            memory = f"-c maintenance_work_mem={_megabytes(dimensions, rows, most)}MB"
            try:
                self._database.sessions.alone(build, lock, memory)
            except StoreError as error:
                if error.details.get("sqlstate") not in _NO_ROOM:
                    raise
                # Several processes build in shared memory, all of it taken at once, and a container may have little.
                logger.warning("%s; building the index in one process", error.details["postgres"])
                self._database.sessions.alone(build, lock, f"{memory} -c max_parallel_maintenance_workers=0")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Begin to build nothing until the end of the block, however long writes go on; then build what is due."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1
        self.build()

    def rebuild(self) -> None:
        """Make every index anew, those of vectors last, and return when they are there."""
        self._database.sessions.alone(self._reindex, lock_number(self._database.schema, "index"), "")
        self.build()

    def close(self) -> None:
        """Finish what was made necessary by our own writes; leave the rest to others."""
        with self._changed:
            self._closing = True
            thread = self._thread
            self._changed.notify_all()
        if thread is None or thread is threading.current_thread():
            return
        try:
            if self._owed:
                thread.join()
        finally:
            # Again and again: a build is several statements, and between two of them there is nothing to cancel.
            while thread.is_alive():
                self._cancel()
                thread.join(0.2)

    def _begin(self) -> None:
        if self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._run, name="homing-postgres-index", daemon=True)
            self._thread.start()

    def _cancel(self) -> None:
        """Stop a build. What is half built is cleared away by the next who builds."""
        with self._changed:
            self._owed = False
            building = self._building
        if building is not None:
            building.cancel_safe(timeout=2.0)

    def _run(self) -> None:
        try:
            self._wait_for_pause()
            if self._owed or not self._closing:
                self.build()
        except HomingError as error:
            # Searches compare one by one meanwhile, and the next write or search tries again.
            logger.warning("no vector index was built: %s", error)
        finally:
            with self._changed:
                self._thread = None

    def _wait_for_pause(self) -> None:
        latest = time.monotonic() + PATIENCE
        with self._changed:
            while not self._closing:
                left = min(self._last_write + PAUSE, latest) - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _build(self, space: int, dimensions: int, connection: Connection) -> None:
        with self._changed:
            self._building = connection
        try:
            self._build_one(connection, space, dimensions)
        finally:
            with self._changed:
                self._building = None

    def _reindex(self, connection: Connection) -> None:
        """Have the server make its indexes anew, but for those of vectors, which are due then. Nobody waits."""
        for (index,) in connection.execute(_INDEXES, (self._database.schema,)).fetchall():
            connection.execute(f"REINDEX INDEX CONCURRENTLY {index}")
        spaces = sql.Identifier(self._database.schema, "spaces").as_string(None)
        connection.execute(f"UPDATE {spaces} SET indexed = false WHERE indexed")

    def _build_one(self, connection: Connection, space: int, dimensions: int) -> None:
        # Everything by its full name: these statements are outside of any transaction, and told nothing before.
        schema, types = (
            sql.Identifier(name).as_string(None) for name in (self._database.schema, self._database.extension)
        )
        table, index = f"{schema}.{vector_table(space)}", f"{vector_table(space)}_by_nearness"
        started = time.monotonic()
        connection.add_notice_handler(_outgrown)
        # What a build that was interrupted left behind is there but not valid, and is never used.
        connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{index}")
        connection.execute(
            f"CREATE INDEX CONCURRENTLY {index} ON {table} "
            f"USING hnsw ((embedding::{types}.halfvec({dimensions})) {types}.halfvec_ip_ops) WITH ({GRAPH})"
        )
        connection.execute(f"ANALYZE {table}, {schema}.records")
        connection.execute(f"UPDATE {schema}.spaces SET indexed = true WHERE id = %s", (space,))
        logger.info("indexed the vectors of space %d in %.1f s", space, time.monotonic() - started)


def _due(connection: Connection) -> list[tuple[Any, ...]]:
    """The spaces that should have an index by now: number, dimensions, about how many vectors, megabytes to build in.

    Nobody but its administrator knows what a server can spare: a build may have half of what is said to be its cache.
    """
    return connection.execute(
        f"SELECT s.id, s.dimensions, {rows_in('s')}, "
        "pg_size_bytes(current_setting('effective_cache_size')) / 2097152 FROM spaces s "
        f"WHERE NOT s.indexed AND s.dimensions <= %s AND {rows_in('s')} >= %s ORDER BY s.id",
        (WIDEST_INDEXED, WORTHWHILE),
    ).fetchall()


def _megabytes(dimensions: int, rows: int, most: int) -> int:
    return max(min(rows * (2 * dimensions + NODE_BYTES) // 2**20 + 4, most), LEAST_MB)


def _outgrown(notice: psycopg.errors.Diagnostic) -> None:
    if "maintenance_work_mem" in (notice.message_primary or ""):
        logger.warning("%s: the index takes long; raise effective_cache_size on the server", notice.message_primary)
