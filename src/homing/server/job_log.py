"""Jobs as rows: what was begun is known to every server on the database, and taken up by another where one ends.

`jobs` has what servers share: who began what, who is at it, how far it is. What it is about, and what came of it, is in
`job_details`, the user's own: where the database keeps users apart, that is written and read as the user.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from homing.database import Database, Row, Step, Transaction, entered
from homing.database.database import MultiUserDatabase
from homing.engine.presence import gone
from homing.engine.processes import this_process
from homing.engine.work import Work
from homing.operations.operation import Scope

if TYPE_CHECKING:
    from homing.server.job import JobView

COMPONENT = "jobs"
STEPS: tuple[Step, ...] = (
    """
    CREATE TABLE jobs(
        id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, user_name TEXT NOT NULL,
        shared INT64 NOT NULL, operation TEXT NOT NULL, input TEXT NOT NULL, scope TEXT NOT NULL, state TEXT NOT NULL,
        done INT64 NOT NULL, total INT64 NOT NULL, result TEXT NOT NULL, error TEXT NOT NULL, created FLOAT64 NOT NULL,
        ended FLOAT64, holder TEXT NOT NULL, seen FLOAT64 NOT NULL)
    """,
    """
    CREATE TABLE job_details(
        user_id TEXT NOT NULL, id TEXT NOT NULL, subject TEXT NOT NULL, input TEXT NOT NULL, content BYTES,
        result TEXT NOT NULL, error TEXT NOT NULL, PRIMARY KEY(user_id, id));
    INSERT INTO job_details SELECT CASE WHEN shared = 1 OR user_name = 'owner' THEN '' ELSE user_name END, id, subject,
        input, NULL, result, error FROM jobs;
    ALTER TABLE jobs DROP COLUMN subject;
    ALTER TABLE jobs DROP COLUMN input;
    ALTER TABLE jobs DROP COLUMN result;
    ALTER TABLE jobs DROP COLUMN error;
    ALTER TABLE jobs ADD COLUMN canceled INT64 NOT NULL DEFAULT 0;
    """,
)
HEAD = "id, kind, user_name, shared, operation, scope, state, done, total, created, ended, holder, canceled"
OWNER = "owner"
LEASE = 600.0
"""Seconds without a sign of life after which a job is taken for abandoned, whatever is known of who was at it."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a job is to do, so that another server can: an operation, its input, and what its caller may.

    The input is JSON; `content` is a file that was sent with it.
    """

    operation: str
    input: str
    scope: Scope
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class JobHead:
    """A job as every server sees it: `ours` is whether this one is at it."""

    id: str
    kind: str
    user: str
    shared: bool
    operation: str
    scope: Scope
    state: str
    done: int
    total: int
    created: float
    ended: float | None
    holder: str
    canceled: bool
    ours: bool

    @property
    def whose(self) -> str:
        """Whose its details are; empty for those of the server."""
        return _whose(self.user, self.shared)


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """A job as it was written down; without an order nobody can take it up."""

    fields: Mapping[str, Any]
    shared: bool
    order: Order | None
    canceled: bool = False


@dataclass(frozen=True, slots=True)
class Busy:
    """A job that is under way somewhere: of which kind, and whose."""

    kind: str
    user: str


class JobLog:
    """The jobs of all servers on one database."""

    def __init__(self, database: Database) -> None:
        database.migrate(COMPONENT, STEPS)
        # Who is still there is known by the rows of workers and servers.
        Work(database)
        self._database = database
        self._holder = f"{this_process()}:{id(self)}"

    def begin(
        self,
        view: JobView,
        *,
        shared: bool,
        order: Order | None,
        ended: Sequence[str] = (),
        check: Callable[[Sequence[Busy]], None] = lambda _: None,
    ) -> str:
        """Write a new job down; the id of one that is under way and does the same, in which case it is not.

        `check` raises where there may not be another one beside those under way, on whichever server. What `ended` may
        not be written down as such yet.
        """
        wanted = order or Order("", "", "read")
        whose = _whose(view.user, shared)

        def work(transaction: Transaction) -> str:
            same = transaction.rows(
                "SELECT j.id FROM jobs j JOIN job_details d ON d.id = j.id "
                "WHERE d.user_id = $1 AND d.subject = $2 AND j.kind = $3 AND j.shared = $4 AND j.ended IS NULL "
                "AND NOT (j.id = ANY($5))",
                *(whose, view.subject, view.kind, int(shared), list(ended)),
            )
            if same:
                return str(same[0][0])
            busy = transaction.rows(
                "SELECT kind, user_name FROM jobs WHERE ended IS NULL AND NOT (id = ANY($1))", list(ended)
            )
            check([Busy(kind, user) for kind, user in busy])
            transaction.rows(
                f"INSERT INTO jobs({HEAD}, seen) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, $8, NULL, $9, 0, $10)",
                *(view.id, view.kind, view.user, int(shared), wanted.operation, wanted.scope, view.state),
                *(view.created, self._holder, transaction.now()),
            )
            transaction.rows(
                "INSERT INTO job_details(user_id, id, subject, input, content, result, error) "
                "VALUES ($1, $2, $3, $4, $5, '', '')",
                *(whose, view.id, view.subject, wanted.input, wanted.content),
            )
            return ""

        return entered(self._database, whose).write(work, COMPONENT)

    def update(self, view: JobView, *, shared: bool) -> None:
        """Write down how a job of ours stands; one that somebody else took over is left alone."""
        whose = _whose(view.user, shared)

        def work(transaction: Transaction) -> None:
            ours = transaction.rows(
                "UPDATE jobs SET state = $1, done = $2, total = $3, ended = $4, seen = $5 "
                "WHERE id = $6 AND holder = $7 RETURNING id",
                *(view.state, view.done, view.total, view.ended, transaction.now(), view.id, self._holder),
            )
            if ours and view.ended is not None:
                transaction.rows(
                    "UPDATE job_details SET result = $1, error = $2, content = NULL WHERE user_id = $3 AND id = $4",
                    *(_dumped(view.result), _dumped(view.error), whose, view.id),
                )

        entered(self._database, whose).write(work)

    def cancel(self, job_id: str) -> None:
        """Ask whoever is at a job to stop."""
        self._database.write(
            lambda own: own.rows("UPDATE jobs SET canceled = 1 WHERE id = $1 AND ended IS NULL", job_id)
        )

    def renew(self) -> None:
        """Say that this server is still at what it holds."""
        self._database.write(
            lambda own: own.rows(
                "UPDATE jobs SET seen = $1 WHERE holder = $2 AND ended IS NULL", own.now(), self._holder
            )
        )

    def release(self) -> None:
        """Leave what is not done to the next server."""
        self._database.write(
            lambda transaction: transaction.rows("UPDATE jobs SET holder = '' WHERE holder = $1", self._holder)
        )

    def take_over(self) -> list[LoggedJob]:
        """The jobs that nobody is at any more, which are ours from now on; the oldest first."""

        def work(transaction: Transaction) -> list[Row]:
            now = transaction.now()
            found = transaction.rows(
                f"SELECT {HEAD}, seen FROM jobs WHERE ended IS NULL AND holder <> $1 ORDER BY created, id", self._holder
            )
            if not found:
                return []
            held = {row[11] for row in found if row[11]}
            died = gone(transaction, held, now, local=not isinstance(self._database, MultiUserDatabase))
            # A time ahead of ours was written before the clock was set back.
            left = [row[:-1] for row in found if not row[11] or abs(now - row[-1]) > LEASE or row[11] in died]
            taken = [row[0] for row in left]
            transaction.rows("UPDATE jobs SET holder = $1, seen = $2 WHERE id = ANY($3)", self._holder, now, taken)
            return left

        return [self.read(self._head(row)) for row in self._database.write(work, COMPONENT, awaited=False)]

    def heads(self, ended: int = 0, ids: Sequence[str] = ()) -> list[JobHead]:
        """The jobs under way, these, and the latest that ended; the oldest first."""

        def work(transaction: Transaction) -> list[Row]:
            some = transaction.rows(f"SELECT {HEAD} FROM jobs WHERE ended IS NULL OR id = ANY($1)", list(ids))
            latest = f"SELECT {HEAD} FROM jobs WHERE ended IS NOT NULL ORDER BY created DESC, id LIMIT $1"
            return [*some, *(transaction.rows(latest, ended) if ended else ())]

        rows = {row[0]: row for row in self._database.read(work)}
        return sorted((self._head(row) for row in rows.values()), key=lambda head: (head.created, head.id))

    def read(self, head: JobHead) -> LoggedJob:
        """A job with what it is about and what came of it; without an order where its details are gone."""
        statement = "SELECT subject, input, content, result, error FROM job_details WHERE user_id = $1 AND id = $2"
        found = entered(self._database, head.whose).read(lambda own: own.rows(statement, head.whose, head.id))
        subject, given, content, result, error = found[0] if found else ("", "", None, "", "")
        fields = {name: getattr(head, name) for name in ("id", "kind", "user", "state", "done", "total", "created")}
        fields |= {"subject": subject, "ended": head.ended, "result": _loaded(result), "error": _loaded(error)}
        known = head.operation and found
        order = Order(head.operation, given, head.scope, bytes(content or b"")) if known else None
        return LoggedJob(fields, head.shared, order, head.canceled)

    def forget(self, kept: int) -> None:
        """Remove what ended, but for the latest."""

        def work(transaction: Transaction) -> list[Row]:
            return transaction.rows(
                "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended IS NOT NULL "
                "ORDER BY created DESC, id LIMIT 1000000 OFFSET $1) RETURNING id, user_name, shared",
                kept,
            )

        of_users: dict[str, list[str]] = {}
        for job_id, user, shared in self._database.write(work, COMPONENT, awaited=False):
            of_users.setdefault(_whose(user, shared), []).append(job_id)
        for whose, ids in of_users.items():
            entered(self._database, whose).write(partial(_forget_details, whose, ids))

    def _head(self, row: Row) -> JobHead:
        name, kind, user, shared, operation, scope, state, done, total, created, ended, holder, canceled = row
        return JobHead(
            *(name, kind, user, bool(shared), operation, scope, state, done, total, created, ended, holder),
            *(bool(canceled), holder == self._holder),
        )


def _whose(user: str, shared: bool) -> str:
    """Whose rows the details of a job are: what all users have, and the owner's own, is the server's."""
    return "" if shared or user == OWNER else user


def _forget_details(whose: str, ids: Sequence[str], transaction: Transaction) -> None:
    transaction.rows("DELETE FROM job_details WHERE user_id = $1 AND id = ANY($2)", whose, list(ids))


def _dumped(told: Mapping[str, Any] | None) -> str:
    return "" if told is None else json.dumps(dict(told))


def _loaded(kept: str) -> dict[str, Any] | None:
    return json.loads(kept) if kept else None
