"""Hears that something was committed which others wait for (LISTEN), on a connection of its own."""

from __future__ import annotations

import hashlib
import logging
import selectors
import socket
import threading
from collections.abc import Callable

from homing.database.postgres.driver import Address, Connection, connect, psycopg

logger = logging.getLogger(__name__)

HEARING, DEAF, AGAIN = 5.0, 2.0, 5.0
"""Seconds after which to look all the same, while it listens and while it cannot, and to try to listen again."""
NOTIFY = "SELECT pg_notify('homing_' || md5(current_schema()), '')"
"""Tells everybody who listens to the schema of the transaction, once that is committed."""


class Listener:
    """Calls whoever wants to hear of `NOTIFY` in a schema, in a thread of its own. Safe to use from several threads.

    Behind a pooler a session is somebody else's a moment later, and nothing is heard: it then does not listen.
    """

    def __init__(self, address: Address, schema: str) -> None:
        self._address = address
        self._channel = f"homing_{hashlib.md5(schema.encode(), usedforsecurity=False).hexdigest()}"
        self._lock = threading.Lock()
        self._heard: set[Callable[[], None]] = set()
        self._thread: threading.Thread | None = None
        self._hearing = False

    def add(self, heard: Callable[[], None]) -> float:
        """Call this from now on, also when something may have been missed; returns the seconds after which to look
        all the same. Adding it again is fine."""
        with self._lock:
            self._heard.add(heard)
            if self._thread is None:
                self._close, self._closed = socket.socketpair()
                self._thread = threading.Thread(target=self._run, name="homing-listener", daemon=True)
                self._thread.start()
            return HEARING if self._hearing else DEAF

    def close(self) -> None:
        """Stop listening."""
        if self._thread is not None:
            self._close.close()
            self._thread.join()
            self._closed.close()

    def _run(self) -> None:
        while True:
            try:
                with connect(self._address.dsn) as connection:
                    if not _is_direct(connection):
                        return
                    connection.execute(f"LISTEN {self._channel}")
                    self._tell(hearing=True)
                    while self._wait(connection, None):
                        for _ in connection.notifies(timeout=0):
                            pass
                        self._tell(hearing=True)
                return
            except psycopg.Error as error:
                logger.debug("%s: not listening for now: %s", self._address, type(error).__name__)
                self._tell(hearing=False)
            if not self._wait(None, AGAIN):
                return

    def _tell(self, *, hearing: bool) -> None:
        with self._lock:
            self._hearing = hearing
            told = list(self._heard)
        for heard in told:
            heard()

    def _wait(self, connection: Connection | None, seconds: float | None) -> bool:
        """Wait until the server says something, or so long; False where this was closed."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._closed, selectors.EVENT_READ)
            if connection is not None:
                selector.register(connection.fileno(), selectors.EVENT_READ)
            return all(key.fileobj is not self._closed for key, _ in selector.select(seconds))


def _is_direct(connection: Connection) -> bool:
    """Whether this is a session of the server itself: a pooler says other numbers than the server."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row == (connection.info.backend_pid,)
