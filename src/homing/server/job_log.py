"""Jobs as rows: what was begun is known after the end of a server, and taken up again by the next one."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homing.database import Database, Row, Step, Transaction
from homing.engine.work_state import PROCESS, is_gone
from homing.operations.operation import Scope

if TYPE_CHECKING:
    from homing.server.jobs import JobView

COMPONENT = "jobs"
STEPS: tuple[Step, ...] = (
    """
    CREATE TABLE jobs(
        id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, user_name TEXT NOT NULL,
        shared INT64 NOT NULL, operation TEXT NOT NULL, input TEXT NOT NULL, scope TEXT NOT NULL, state TEXT NOT NULL,
        done INT64 NOT NULL, total INT64 NOT NULL, result TEXT NOT NULL, error TEXT NOT NULL, created FLOAT64 NOT NULL,
        ended FLOAT64, holder TEXT NOT NULL, seen FLOAT64 NOT NULL)
    """,
    "ALTER TABLE jobs ADD COLUMN cancelled INT64 NOT NULL DEFAULT 0",
)
COLUMNS = (
    "id, kind, subject, user_name, shared, operation, input, scope, state, done, total, result, error, created, ended"
)
OPEN = "state IN ('waiting', 'running')"
LEASE = 600.0
"""Seconds without a sign of life after which a job of another machine is taken for abandoned."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a job is to do, so that another server can: an operation, its input as JSON, and what its caller may."""

    operation: str
    input: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """A job as it was written down; without an order nobody can take it up."""

    fields: Mapping[str, Any]
    shared: bool
    order: Order | None


Check = Callable[[Sequence[LoggedJob]], None]
"""Looks at the jobs that are under way; raises where there may not be another one."""


class JobLog:
    """The jobs of all servers on one database."""

    def __init__(self, database: Database) -> None:
        database.migrate(COMPONENT, STEPS)
        self._database = database
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{PROCESS}:{id(self)}"

    def begin(self, view: JobView, *, shared: bool, order: Order | None, check: Check | None = None) -> None:
        """Write a new job down, if `check` does not refuse it beside those that are under way, here or elsewhere."""
        wanted = order or Order("", "", "read")
        values = (
            view.id,
            view.kind,
            view.subject,
            view.user,
            int(shared),
            wanted.operation,
            wanted.input,
            wanted.scope,
        )

        def work(transaction: Transaction) -> None:
            if check is not None:
                check([_read(row) for row in transaction.rows(f"SELECT {COLUMNS} FROM jobs WHERE {OPEN}")])
            transaction.rows(
                f"INSERT INTO jobs({COLUMNS}, holder, seen) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, '', '', $10, NULL, $11, $12)",
                *values,
                view.state,
                view.created,
                self._holder,
                transaction.now(),
            )

        self._database.write(work, COMPONENT)

    def update(self, view: JobView) -> None:
        """Write down how a job of ours stands; one that somebody else took over is left alone."""

        def work(transaction: Transaction) -> None:
            transaction.rows(
                "UPDATE jobs SET state = $1, done = $2, total = $3, result = $4, error = $5, ended = $6, seen = $7 "
                "WHERE id = $8 AND holder = $9",
                view.state,
                view.done,
                view.total,
                "" if view.result is None else json.dumps(view.result),
                "" if view.error is None else json.dumps(dict(view.error)),
                view.ended,
                transaction.now(),
                view.id,
                self._holder,
            )

        self._database.write(work)

    def find(self, job: str) -> LoggedJob | None:
        """A job of whichever server; None where there is none."""
        found = self._database.read(lambda tx: tx.rows(f"SELECT {COLUMNS} FROM jobs WHERE id = $1", job))
        return _read(found[0]) if found else None

    def all(self, ended: int) -> list[LoggedJob]:
        """What is under way on all servers, and the latest that ended, the newest first."""
        found = self._database.read(
            lambda tx: (
                tx.rows(f"SELECT {COLUMNS} FROM jobs WHERE {OPEN}")
                + tx.rows(
                    f"SELECT {COLUMNS} FROM jobs WHERE ended IS NOT NULL ORDER BY created DESC, id LIMIT $1", ended
                )
            )
        )
        return sorted(map(_read, found), key=lambda one: one.fields["created"], reverse=True)

    def cancel(self, job: str) -> None:
        """Ask the server that is at a job to stop it."""
        self._database.write(
            lambda tx: tx.rows(f"UPDATE jobs SET cancelled = 1 WHERE id = $1 AND {OPEN}", job), COMPONENT
        )

    def cancelled(self) -> list[str]:
        """The jobs of ours that somebody asked to stop."""
        sql = f"SELECT id FROM jobs WHERE holder = $1 AND cancelled = 1 AND {OPEN}"
        return [one for (one,) in self._database.read(lambda tx: tx.rows(sql, self._holder))]

    def release(self) -> None:
        """Leave what is not done to the next server."""
        self._database.write(
            lambda transaction: transaction.rows("UPDATE jobs SET holder = '' WHERE holder = $1", self._holder)
        )

    def take_over(self) -> list[LoggedJob]:
        """The jobs that nobody is at any more, which are ours from now on; the oldest first."""

        def work(transaction: Transaction) -> list[LoggedJob]:
            now = transaction.now()
            open_jobs = transaction.rows(f"SELECT {COLUMNS}, holder, seen FROM jobs WHERE {OPEN} ORDER BY created, id")
            # A time ahead of ours was written before the clock was set back.
            left = [
                row for *row, holder, seen in open_jobs if not holder or abs(now - seen) > LEASE or is_gone(str(holder))
            ]
            transaction.rows(
                "UPDATE jobs SET holder = $1, seen = $2 WHERE id = ANY($3)", self._holder, now, [row[0] for row in left]
            )
            return [_read(row) for row in left]

        return self._database.write(work, COMPONENT)

    def ended(self, limit: int) -> list[LoggedJob]:
        """The latest jobs that ended, the oldest of them first; forgets those before."""

        def work(transaction: Transaction) -> list[LoggedJob]:
            found = transaction.rows(
                f"SELECT {COLUMNS} FROM jobs WHERE ended IS NOT NULL ORDER BY created DESC, id LIMIT $1", limit
            )
            if len(found) == limit:
                transaction.rows("DELETE FROM jobs WHERE ended IS NOT NULL AND created < $1", found[-1][13])
            return [_read(row) for row in reversed(found)]

        return self._database.write(work, COMPONENT)


def _read(row: Row | list[Any]) -> LoggedJob:
    (name, kind, subject, user, shared, operation, given, scope, state, done, total, result, error, created, ended) = (
        row
    )
    fields = {
        "id": name,
        "kind": kind,
        "subject": subject,
        "user": user,
        "state": state,
        "done": done,
        "total": total,
        "result": json.loads(result) if result else None,
        "error": json.loads(error) if error else None,
        "created": created,
        "ended": ended,
    }
    return LoggedJob(fields, bool(shared), Order(operation, given, scope) if operation else None)
