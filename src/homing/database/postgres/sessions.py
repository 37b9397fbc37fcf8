"""Work on a server: begun, committed, and done again where a connection broke or writers met.

Work is a function of a connection, because it may have to run more than once. What it raises is passed on; what the
driver raises becomes an error of a store.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, TypeVar

from homing.database.postgres.driver import AGAIN, Address, Connection, connect, fault, is_lost, psycopg, sql
from homing.database.postgres.pool import Pool
from homing.errors import StoreUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[Connection], T]

COLLISIONS = 10
"""How often writers that met are sent back before the caller hears of it."""
IN_TURN = 3
"""After how many collisions a writer goes one by one with others that had so many."""
TURN = 7_046_029_254_386_353_087
"""The advisory lock of those."""
FOUND_OUT = 5.0
"""Seconds in which to find out whether a commit that got no answer has happened."""
AT_ONCE = 100
"""Tickets that one transaction takes away, at most."""

_DRAW = (
    "WITH gone AS (DELETE FROM tickets WHERE ticket = ANY(%s)) "
    "INSERT INTO tickets SELECT %s WHERE pg_current_xact_id_if_assigned() IS NOT NULL RETURNING ticket"
)
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_READ = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
# Writers look again at what they waited for, which a stricter isolation would refuse.
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"


class Ticket(NamedTuple):
    """What a transaction left, empty where it changed nothing, and whose tickets it takes away."""

    name: str
    gone: tuple[str, ...]


class Tickets:
    """How a writer finds out whether a commit happened whose answer got lost. Safe to use from several threads.

    A number of the server will not do. After a crash the server gives the numbers of transactions that left no trace to
    others, and then says of them that they were committed. So each transaction that changes something leaves a row with
    a name that nobody else draws; the next one of the same process takes it away again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settled: dict[str, None] = {}

    def draw(self, connection: Connection) -> Ticket:
        """Leave a ticket with the transaction that is open."""
        with self._lock:
            gone = tuple(islice(self._settled, AT_ONCE))
        try:
            row = connection.execute(_DRAW, (list(gone), secrets.token_hex(16))).fetchone()
        except psycopg.errors.ReadOnlySqlTransaction:
            # On a replica nothing was changed, else it would have been refused before.
            return Ticket("", ())
        return Ticket("" if row is None else str(row[0]), gone)

    def settle(self, ticket: Ticket) -> None:
        """The transaction is known to have been committed: its ticket may go, and others are gone."""
        with self._lock:
            for name in ticket.gone:
                self._settled.pop(name, None)
            if ticket.name:
                self._settled[ticket.name] = None

    def is_taken(self, connection: Connection, ticket: Ticket) -> bool:
        """Whether the transaction with this ticket was committed; waits for one that is still being so.

        Where it was not, the ticket is taken here, so that it never will be.
        """
        row = connection.execute(
            "INSERT INTO tickets VALUES (%s) ON CONFLICT DO NOTHING RETURNING ticket", (ticket.name,)
        ).fetchone()
        self.settle(Ticket(ticket.name, ()))
        return row is None


class Sessions:
    """Runs work on a primary, and reading work on a replica where there is one that has seen our writes.

    Everything is a transaction, and what a session is to know is said at the beginning of each (`settings`): between
    two of them a connection may be another one, as behind a pooler.
    """

    def __init__(
        self, address: Address, replica: Address | None, configure: Callable[[Connection], None], settings: str
    ) -> None:
        self.address = address
        self._settings = settings
        self._primary = Pool(address, configure)
        self._replica = None if replica is None else Pool(replica, configure)
        self._written = ""
        self._tickets = Tickets()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._primary.closed

    def close(self) -> None:
        """Close all connections."""
        self._primary.close()
        if self._replica is not None:
            self._replica.close()

    def read(self, work: Work[T], user: str = "", *, snapshot: bool = False, fresh: bool = False) -> T:
        """What the work answers, from the replica if it can be had and is up to date, else from the primary.

        Without `snapshot` (and without a user) each statement sees what is committed when it begins. With `fresh` the
        replica is asked only where the primary cannot be reached.
        """
        begin = self._begin(_SNAPSHOT if snapshot or user else _READ, user)

        def attempt() -> T:
            with self._primary.connection() as connection:
                return _run(connection, work, begin)

        if fresh and self._replica is not None:
            with suppress(StoreUnavailable):
                return self._translated(lambda: self._twice(attempt))
        if self._replica is not None:
            try:
                answer = self._read_replica(self._replica, work, begin)
            except psycopg.Error as error:
                # Also a replica that cancelled the query because its data was about to change.
                logger.warning("%s: %s; reading from the primary", self._replica.address, type(error).__name__)
                self._replica.forget()
            else:
                if answer is not None:
                    return answer[0]
        return self._translated(lambda: self._twice(attempt))

    def write(self, work: Work[T], user: str = "", *, lock: int | None = None, awaited: bool = True) -> T:
        """What the work answers, committed; `lock` is an advisory lock that is held from its first statement on.

        `awaited` is whether a replica has to have seen it before it answers the next read.
        When this raises, nothing was changed, or `details` say that the outcome is unknown.
        """

        def attempt() -> T:
            for collision in range(COLLISIONS):
                locks = [one for one in (lock, TURN if collision >= IN_TURN else None) if one is not None]
                try:
                    return self._committed(work, self._begin(_WRITE, user, *locks), awaited)
                except AGAIN as error:
                    logger.debug("%s: %s, again", self.address, type(error).__name__)
                    if collision == COLLISIONS - 1:
                        raise
                    time.sleep(random.uniform(0, 0.01 * 2**collision))
            raise AssertionError("unreachable")

        return self._translated(lambda: self._twice(attempt))

    def alone(self, work: Work[T], lock: int, options: str) -> T | None:
        """What the work answers, on a connection of its own where each statement is a transaction, and none of ours.

        None where somebody else has the advisory lock, which a transaction beside it holds. `options` are for the
        server; a pooler that passes none on has its own.
        """

        def attempt() -> T | None:
            with self._primary.connection() as holding:
                try:
                    holding.execute(self._begin(_WRITE, ""))
                    # Without parameters: else the statement, done as it is, keeps its view of the database, and who
                    # builds an index waits for all views from before to end.
                    row = holding.execute(f"SELECT pg_try_advisory_xact_lock({lock})").fetchone()
                    if row != (True,):
                        return None
                    with _connect_with(self.address, options) as connection:
                        return work(connection)
                finally:
                    with suppress(psycopg.Error):
                        holding.execute("ROLLBACK")

        return self._translated(attempt)

    def _committed(self, work: Work[T], begin: str, awaited: bool) -> T:
        with self._primary.connection() as connection:
            try:
                connection.execute(begin)
                answer = work(connection)
                ticket = self._tickets.draw(connection)
            except BaseException:
                # Where even this fails the connection is of no use, and the pool will see that.
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            try:
                connection.execute("COMMIT")
                self._tickets.settle(ticket)
                if awaited and self._replica is not None:
                    self._written = _position(connection)
                return answer
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
                lost = error
        # The answer to the commit got lost, and with it whether there is anything to repeat.
        if ticket.name and not self._happened(ticket):
            raise lost
        return answer

    def _happened(self, ticket: Ticket) -> bool:
        """Whether the transaction with this ticket was committed."""
        deadline = time.monotonic() + FOUND_OUT
        while time.monotonic() < deadline:
            try:
                with self._primary.connection() as connection:
                    return self._tickets.is_taken(connection, ticket)
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
                self._primary.forget()
            time.sleep(0.1)
        raise StoreUnavailable(
            f"{self.address} was lost in the middle of a commit; whether it was written is not known: write it again",
            details={"server": str(self.address), "outcome": "unknown"},
        )

    def _read_replica(self, replica: Pool, work: Work[T], begin: str) -> tuple[T] | None:
        """The answer of the replica; None where it has not seen yet what this store has written."""
        with replica.connection() as connection:
            if self._written:
                row = connection.execute(
                    "SELECT coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, true)", (self._written,)
                ).fetchone()
                if row is None or not row[0]:
                    return None
            return (_run(connection, work, begin),)

    def _twice(self, attempt: Callable[[], T]) -> T:
        """Once more where the connection broke: it may have been the last of a server that is back already."""
        try:
            return attempt()
        except psycopg.Error as error:
            if not is_lost(error) or self.closed:
                raise
            logger.info("%s: connection lost, trying another", self.address)
            self._primary.forget()
        return attempt()

    def _begin(self, statement: str, user: str, *locks: int) -> str:
        """How a transaction begins, in one message to the server.

        It says who asks to the policies of the tables, until the end of the transaction, and waits for its locks.
        """
        who = [f"set_config('homing.user_id', {sql.Literal(user).as_string(None)}, true)"] if user else []
        told = [self._settings, *who, *(f"pg_advisory_xact_lock({lock})" for lock in locks)]
        return f"{statement}; SELECT {', '.join(told)}"

    def _translated(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except psycopg.Error as error:
            raise fault(self.address, error) from error


def _connect_with(address: Address, options: str) -> Connection:
    try:
        return connect(address.dsn, options)
    except psycopg.OperationalError as error:
        if "unsupported startup parameter" not in str(error):
            raise
        return connect(address.dsn)


def _run(connection: Connection, work: Work[T], begin: str) -> T:
    try:
        connection.execute(begin)
        return work(connection)
    finally:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")


def _position(connection: Connection) -> str:
    row = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
    return str(row[0]) if row else ""
