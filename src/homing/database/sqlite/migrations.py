"""A database file grows by numbered steps, each applied once and never changed after a release.

Several components keep their tables in one file (the store, the queue, documents, models); each numbers its own steps.
`migrations` remembers which were applied. A file made by a newer Homing is refused rather than misread.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from homing.database.database import Step
from homing.database.sqlite.rows import rows
from homing.database.sqlite.statements import definitions
from homing.errors import StoreCorrupt, StoreReadOnly, StoreTooNew, StoreTooOld

if TYPE_CHECKING:
    from homing.database.sqlite.database import SqliteTransaction

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x484F4D49
"""Marks a file as ours: HOMI."""

FORMAT = 3
"""`user_version`: how the file as a whole is laid out. Components evolve without changing it."""


def mark(connection: apsw.Connection) -> None:
    """Make an empty file one of ours, inside a transaction."""
    connection.execute(
        "CREATE TABLE migrations(component TEXT NOT NULL, number INTEGER NOT NULL, "
        "applied TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY(component, number)) WITHOUT ROWID"
    )
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", FORMAT)


def check_ours(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that is not ours, or of another format than ours."""
    [(application, version)] = rows(
        connection, "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
    )
    details = {"path": str(path), "found": version, "known": FORMAT}
    if application != APPLICATION_ID:
        raise StoreCorrupt(
            f"{path} is an SQLite database but not a Homing store; give another path", details={"path": str(path)}
        )
    if version > FORMAT:
        raise StoreTooNew(
            f"{path} has format {version}, this Homing knows {FORMAT}; upgrade Homing to open it", details=details
        )
    if version < FORMAT:
        raise StoreTooOld(
            f"{path} was made by an earlier edition of Homing, which this one does not read; "
            "move the folder away and add your texts again",
            details=details,
        )


def migrate(transaction: SqliteTransaction, path: Path, component: str, steps: Sequence[Step]) -> None:
    """Bring a component's tables up to date. Many processes may do so at once: one of them does the work."""
    connection = transaction.connection
    if _check_applied(connection, path, component, len(steps)) == len(steps):
        return
    if connection.readonly("main"):
        raise StoreReadOnly(f"{path} needs an upgrade but cannot be written; make it writable and open it once")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited for the lock.
        done = _check_applied(connection, path, component, len(steps))
        for number, step in enumerate(steps[done:], start=done + 1):
            if isinstance(step, str):
                for definition in definitions(step):
                    connection.execute(definition)
            else:
                step(transaction)
            connection.execute("INSERT INTO migrations(component, number) VALUES (?, ?)", (component, number))
            logger.info("%s: applied step %d of %s", path, number, component)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def applied(connection: apsw.Connection, component: str) -> int:
    """How many steps of a component were applied."""
    [(number,)] = rows(connection, "SELECT coalesce(max(number), 0) FROM migrations WHERE component = ?", (component,))
    return int(number)


def _check_applied(connection: apsw.Connection, path: Path, component: str, known: int) -> int:
    """How many steps were applied; refuses more than this Homing knows."""
    found = applied(connection, component)
    if found > known:
        raise StoreTooNew(
            f"{path}: {component!r} is at step {found}, this Homing knows {known}; upgrade Homing to open it",
            details={"path": str(path), "component": component, "found": found, "known": known},
        )
    return found
