"""A database file grows by numbered steps, each applied once and never changed after a release.

Several components keep their tables in one file (the store, the queue, documents, models); each numbers its own steps.
`migrations` remembers which were applied. A file made by a newer Homing is refused rather than misread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from homing.database.rows import rows
from homing.errors import StoreCorrupt, StoreReadOnly, StoreTooNew

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x484F4D49
"""Marks a file as ours: HOMI."""

FORMAT = 1
"""`user_version`: how the file as a whole is laid out. Components evolve without changing it."""

Step = str | Callable[[apsw.Connection], None]
"""SQL statements, or a function that is given the connection; both run inside the transaction."""


def check_ours(connection: apsw.Connection, path: Path) -> bool:
    """Whether the file was set up by Homing; False for an empty one. Refuses foreign files and newer formats."""
    # One statement, one snapshot: another process may be setting the file up between two.
    [(application, version, tables)] = rows(
        connection,
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) "
        "FROM pragma_application_id, pragma_user_version",
    )
    if application == APPLICATION_ID:
        if version > FORMAT:
            raise StoreTooNew(
                f"{path} has format {version}, this Homing knows {FORMAT}; upgrade Homing to open it",
                details={"path": str(path), "found": version, "known": FORMAT},
            )
        return True
    if application or tables:
        raise StoreCorrupt(
            f"{path} is an SQLite database but not a Homing store; give another path", details={"path": str(path)}
        )
    return False


def migrate(connection: apsw.Connection, path: Path, component: str, steps: Sequence[Step]) -> None:
    """Bring a component's tables up to date. Many processes may do so at once: one of them does the work."""
    if _applied(connection, path, component, len(steps)) == len(steps):
        return
    if connection.readonly("main"):
        raise StoreReadOnly(f"{path} needs an upgrade but cannot be written; make it writable and open it once")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not check_ours(connection, path):
            connection.execute(
                "CREATE TABLE migrations(component TEXT NOT NULL, number INTEGER NOT NULL, "
                "applied TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY(component, number)) WITHOUT ROWID"
            )
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", FORMAT)
        # Another process may have done it while this one waited for the lock.
        done = _applied(connection, path, component, len(steps))
        for number, step in enumerate(steps[done:], start=done + 1):
            if isinstance(step, str):
                connection.execute(step)
            else:
                step(connection)
            connection.execute("INSERT INTO migrations(component, number) VALUES (?, ?)", (component, number))
            logger.info("%s: applied step %d of %s", path, number, component)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _applied(connection: apsw.Connection, path: Path, component: str, known: int) -> int:
    if not check_ours(connection, path):
        return 0
    found: int = connection.execute(
        "SELECT coalesce(max(number), 0) FROM migrations WHERE component = ?", (component,)
    ).get
    if found > known:
        raise StoreTooNew(
            f"{path}: {component!r} is at step {found}, this Homing knows {known}; upgrade Homing to open it",
            details={"path": str(path), "component": component, "found": found, "known": known},
        )
    return found
