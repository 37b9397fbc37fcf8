"""Connections that are kept and lent out.

A caller that finds none idle connects by itself, in its own thread. So a server that is down is known at once, in the
words of the system, and one that is back is used at once; nothing waits for a background thread to notice.
"""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from homing.database.postgres.address import Address
from homing.database.postgres.driver import Connection, connect, psycopg
from homing.errors import StoreBusy, StoreError

SIZE = 16
"""Connections that one store opens at most."""
WAIT = 10.0
"""Seconds that a caller waits for a connection while all are in use."""
IDLE = 600.0
"""Seconds after which an unused connection is closed rather than used again; firewalls forget idle ones."""

_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class Pool:
    """At most `size` connections to one server, each used by one thread at a time."""

    def __init__(self, address: Address, configure: Callable[[Connection], None], *, size: int = SIZE) -> None:
        self.address = address
        self.closed = False
        self._configure = configure
        self._size = size
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        # The last one returned is lent first: a calm store lives on few connections.
        self._idle: list[tuple[Connection, float]] = []

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection that answers. Given back when done; closed where it broke or was left inside a transaction."""
        if not self._free.acquire(timeout=WAIT):
            raise StoreBusy(
                f"{self.address}: all {self._size} connections were in use for {WAIT:.0f} s; use fewer threads"
            )
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
