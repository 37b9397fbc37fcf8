"""The database of an app, opened when it is first needed."""

from __future__ import annotations

import threading
from pathlib import Path

from homing.database.database import Database
from homing.database.sqlite import SqliteDatabase


class LazyDatabase:
    """Opens one database file once, for all who share it. Safe to call from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._opened: SqliteDatabase | None = None

    def open(self) -> Database:
        """The database, made where it does not exist."""
        with self._lock:
            if self._opened is None:
                self._opened = SqliteDatabase(self._path)
            return self._opened

    def existing(self) -> Database | None:
        """The database; None where there is none yet. Asking makes none."""
        return self.open() if self._opened is not None or self._path.exists() else None

    def close(self) -> None:
        """Let go of the database, if it was opened."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
