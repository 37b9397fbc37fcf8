"""Connections that are kept and lent out, and what each is told when it is made.

A caller that finds none idle connects by itself, in its own thread. So a server that is down is known at once, in the
words of the system, and one that is back is used at once; nothing waits for a background thread to notice.
"""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from homing.database.postgres.driver import Address, Connection, connect, psycopg, register, sql
from homing.errors import InvalidArgument, StoreBusy, StoreError

SIZE = 16
"""Connections that one store opens at most."""
WAIT = 10.0
"""Seconds that a caller waits for a connection while all are in use."""
IDLE = 600.0
"""Seconds after which an unused connection is closed rather than used again; firewalls forget idle ones."""
STATEMENT_TIMEOUT = 30.0
"""Seconds that the server works on one statement before it gives up."""
EF_SEARCH = 250
"""How many of the nearest vectors an index keeps in view while it looks.

Recall@10 of questions among 100,000 sentences of other subjects, embedded by the bundled model, in the graph that the
store builds: 0.92 at 60, 0.977 at 200, 0.985 at 300 (in pgvector's default graph: 0.87, 0.955, 0.97). Questions that
are like the sentences reach that at 40.
"""

_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class Pool:
    """At most `SIZE` connections to one server, each used by one thread at a time."""

    def __init__(self, address: Address, configure: Callable[[Connection], None]) -> None:
        self.address = address
        self.closed = False
        self._configure = configure
        self._free = threading.BoundedSemaphore(SIZE)
        self._lock = threading.Lock()
        # The last one returned is lent first: a calm store lives on few connections.
        self._idle: list[tuple[Connection, float]] = []

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection that answers. Given back when done; closed where it broke or was left inside a transaction."""
        if not self._free.acquire(timeout=WAIT):
            raise StoreBusy(f"{self.address}: all {SIZE} connections were in use for {WAIT:.0f} s; use fewer threads")
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    def forget(self) -> None:
        """Close the idle connections: one of them broke, so the others likely did."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def close(self) -> None:
        """Close everything; what is in use is closed when it comes back."""
        self.closed = True
        self.forget()

    def _take(self) -> Connection:
        while True:
            with self._lock:
                if self.closed:
                    raise StoreError(f"{self.address}: this store is closed; open it again")
                found = self._idle.pop() if self._idle else None
            if found is None:
                break
            connection, since = found
            if time.monotonic() - since < IDLE and _is_quiet(connection):
                return connection
            connection.close()
        connection = connect(self.address.dsn)
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        usable = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if usable and not self.closed:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()


def _is_quiet(connection: Connection) -> bool:
    """False where the server has spoken on an idle connection: it then said goodbye."""
    if connection.closed:
        return False
    with _Selector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return not selector.select(0)


def configure(connection: Connection) -> None:
    """Let a connection send and receive vectors, a type whose number differs from database to database.

    It says nothing to the session: behind a pooler that is somebody else's a moment later.
    """
    row = connection.execute(
        "SELECT t.oid FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace "
        "WHERE e.extname = 'vector' AND t.typname = 'vector'"
    ).fetchone()
    assert row is not None
    register(connection, row[0])


def settings(schema: str, extension: str, timeout: int) -> str:
    """What each transaction is told first, for as long as it lasts: a list for SELECT.

    Names are looked up in the schema of our tables, then in that of the types of pgvector.
    """
    path = ", ".join(sql.Identifier(name).as_string(None) for name in (schema, extension))
    told = {
        "search_path": path,
        "statement_timeout": str(timeout),
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": str(EF_SEARCH),
        # The planner takes an index page for four times as dear as it is where it is in memory or on flash, and would
        # compare thousands of vectors, each cast to half precision, rather than look into the index.
        "random_page_cost": "1.1",
        "jit": "off",
    }
    return ", ".join(
        f"set_config('{name}', {sql.Literal(value).as_string(None)}, true)" for name, value in told.items()
    )


def milliseconds(timeout: float | None) -> int:
    """A time limit as the server counts it; 0 is none."""
    if timeout is None:
        return 0
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 86_400:
        raise InvalidArgument(f"statement_timeout is seconds, up to a day, or None; got {timeout!r}")
    return max(1, round(timeout * 1000))
