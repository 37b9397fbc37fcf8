"""Tickets: how a writer finds out whether a commit happened whose answer got lost.

A number of the server will not do. After a crash the server gives the numbers of transactions that left no trace to
others, and then says of them that they were committed. So each transaction that changes something leaves a row with a
name that nobody else draws; the next one of the same process takes it away again.
"""

from __future__ import annotations

import secrets
import threading
from itertools import islice
from typing import NamedTuple

from homing.database.postgres.driver import Connection, psycopg

TABLE = "CREATE TABLE IF NOT EXISTS tickets(ticket text NOT NULL PRIMARY KEY)"
AT_ONCE = 100
"""Tickets that one transaction takes away, at most."""

_DRAW = (
    "WITH gone AS (DELETE FROM tickets WHERE ticket = ANY(%s)) "
    "INSERT INTO tickets SELECT %s WHERE pg_current_xact_id_if_assigned() IS NOT NULL RETURNING ticket"
)


class Ticket(NamedTuple):
    """What a transaction left, empty where it changed nothing, and whose tickets it takes away."""

    name: str
    gone: tuple[str, ...]


class Tickets:
    """The tickets of one process. Safe to use from several threads."""

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
