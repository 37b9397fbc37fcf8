"""Numbered steps that bring the tables of a component up to date, one process at a time.

Several components keep their tables in one schema (the store, documents, models); each numbers its own steps.
`migrations` remembers which were applied. Tables made by a newer Homing are refused rather than misread.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from homing.database.database import Step
from homing.database.postgres.driver import Connection, sql
from homing.database.postgres.fence import extend_fence
from homing.database.postgres.locks import lock_number
from homing.database.postgres.statements import definitions
from homing.errors import StoreTooNew

if TYPE_CHECKING:
    from homing.database.postgres.database import PostgresTransaction

logger = logging.getLogger(__name__)


def migrate(transaction: PostgresTransaction, schema: str, component: str, steps: Sequence[Step]) -> None:
    """Bring a component's tables up to date. Many processes may do so at once: one of them does the work."""
    connection = transaction.connection
    if _check_applied(connection, schema, component, len(steps)) == len(steps):
        return
    # Longer than an ordinary statement may take: for another process that is at it, and for the steps themselves.
    connection.execute("SET LOCAL statement_timeout = 0")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "schema"),))
    connection.execute(
        sql.SQL(
            'CREATE TABLE IF NOT EXISTS {}(component text COLLATE "C" NOT NULL, number bigint NOT NULL, '
            "applied timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (component, number))"
        ).format(_table(schema))
    )
    done = _check_applied(connection, schema, component, len(steps))
    for number, step in enumerate(steps[done:], start=done + 1):
        if isinstance(step, str):
            for definition in definitions(step):
                connection.execute(definition)
        else:
            step(transaction)
        connection.execute(
            sql.SQL("INSERT INTO {}(component, number) VALUES (%s, %s)").format(_table(schema)), (component, number)
        )
        logger.info("schema %s: applied step %d of %s", schema, number, component)
    extend_fence(connection)


def applied(connection: Connection, schema: str, component: str) -> int:
    """How many steps of a component were applied."""
    there = connection.execute("SELECT to_regclass(%s)", (_table(schema).as_string(connection),)).fetchone()
    if there is None or there[0] is None:
        return 0
    row = connection.execute(
        sql.SQL("SELECT coalesce(max(number), 0) FROM {} WHERE component = %s").format(_table(schema)), (component,)
    ).fetchone()
    return int(row[0]) if row else 0


def _table(schema: str) -> sql.Identifier:
    return sql.Identifier(schema, "migrations")


def _check_applied(connection: Connection, schema: str, component: str, known: int) -> int:
    """How many steps were applied; refuses more than this Homing knows."""
    found = applied(connection, schema, component)
    if found > known:
        raise StoreTooNew(
            f"schema {schema!r}: {component!r} is at step {found}, this Homing knows {known}; upgrade Homing to use it",
            details={"schema": schema, "component": component, "found": found, "known": known},
        )
    return found
