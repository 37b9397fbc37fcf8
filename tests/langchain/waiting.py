"""Statements that wait, so that something can happen in the middle of a search."""

from __future__ import annotations

import time

import psycopg
from psycopg import sql

from tests.conftest import Database


class Waiting:
    """Keeps statements on a table waiting, so that something can happen in the middle of a search."""

    def __init__(self, database: Database, table: str, schema: str = "public") -> None:
        self._locker = psycopg.connect(database.admin_url)
        self._looker = psycopg.connect(database.admin_url, autocommit=True)
        self._killed: set[int] = set()
        self._table = sql.SQL(".").join([sql.Identifier(schema), sql.Identifier(table)])

    def __enter__(self) -> Waiting:
        self._locker.execute(sql.SQL("LOCK TABLE {}").format(self._table))
        return self

    def waiting(self, count: int) -> list[int]:
        """The processes of the statements that wait, when so many do."""
        for _ in range(12_000):
            rows = self._looker.execute(
                "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() "
                "AND usename <> current_user"
            ).fetchall()
            # One that was killed may still be listed for a moment.
            alive = [int(pid) for (pid,) in rows if pid not in self._killed]
            if len(alive) >= count:
                return alive
            time.sleep(0.01)
        raise AssertionError("nobody waits")

    def kill(self, processes: list[int]) -> None:
        self._killed.update(processes)
        for process in processes:
            self._looker.execute("SELECT pg_terminate_backend(%s)", (process,))

    def release(self) -> None:
        self._locker.rollback()

    def __exit__(self, *_: object) -> None:
        self._locker.close()
        self._looker.close()
