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

from homing.database.postgres.driver import Connection, sql
from homing.database.postgres.schema import lock_number
from homing.database.postgres.sessions import Sessions
from homing.errors import HomingError
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
MEMORY_MB = (64, 2_048)
"""The least and the most memory that a build asks the server for; it is fastest when its graph fits."""

# Those of vectors are built by `_build`, which gives the server the memory that they need.
_INDEXES = (
    "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relkind = 'i' "
    "AND c.relnamespace = current_schema()::regnamespace AND a.amname <> 'hnsw' ORDER BY 1"
)


class Indexing:
    """Builds the indexes of one schema; one process at a time does."""

    def __init__(self, sessions: Sessions, schema: str) -> None:
        self._sessions = sessions
        self._schema = schema
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
        self._sessions.alone(self._build_due)

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
        self._sessions.alone(_reindex)
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

    def _build_due(self, connection: Connection) -> None:
        due = connection.execute(
            f"SELECT s.id, s.dimensions, {rows_in('s')} FROM spaces s "
            f"WHERE NOT s.indexed AND s.dimensions <= %s AND {rows_in('s')} >= %s ORDER BY s.id",
            (WIDEST_INDEXED, WORTHWHILE),
        ).fetchall()
        if not due or not self._lock(connection):
            return
        with self._changed:
            self._building = connection
        try:
            for space, dimensions, rows in due:
                _build(connection, int(space), int(dimensions), int(rows))
        finally:
            with self._changed:
                self._building = None

    def _lock(self, connection: Connection) -> bool:
        # Held by the session, which ends with this connection, however it ends.
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (lock_number(self._schema, "index"),)).fetchone()
        return bool(row and row[0])


def _reindex(connection: Connection) -> None:
    """Have the server make its indexes anew, but for those of vectors, which are due then. Nobody waits."""
    connection.execute("SET statement_timeout = 0")
    for (index,) in connection.execute(_INDEXES).fetchall():
        connection.execute(sql.SQL("REINDEX INDEX CONCURRENTLY {}").format(sql.SQL(index)))
    connection.execute("UPDATE spaces SET indexed = false WHERE indexed")


def _build(connection: Connection, space: int, dimensions: int, rows: int) -> None:
    table = vector_table(space)
    index = f"{table}_by_nearness"
    started = time.monotonic()
    memory = min(max(rows * (2 * dimensions + 600) // 1_000_000, MEMORY_MB[0]), MEMORY_MB[1])
    connection.execute("SET statement_timeout = 0")
    connection.execute(f"SET maintenance_work_mem = '{memory}MB'")
    # What a build that was interrupted left behind is there but not valid, and is never used.
    connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
    half = f"halfvec({dimensions})"
    connection.execute(
        f"CREATE INDEX CONCURRENTLY {index} ON {table} USING hnsw ((embedding::{half}) halfvec_ip_ops) WITH ({GRAPH})"
    )
    connection.execute(f"ANALYZE {table}, records")
    connection.execute("UPDATE spaces SET indexed = true WHERE id = %s", (space,))
    logger.info("indexed %d vectors of space %d in %.1f s", rows, space, time.monotonic() - started)
