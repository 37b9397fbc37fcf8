"""One SQLite file, shared by the threads of this process and by other processes.

One connection writes, guarded by a lock; readers borrow connections from a pool and each sees one snapshot. The journal
is a write-ahead log, so readers never wait for the writer nor the writer for them. Every commit is synced to the disk
(`synchronous=FULL`): what was returned survives `kill -9` and a power cut. `NORMAL` would survive only the first.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import sqlite_vec  # type: ignore[import-untyped]

from homing.database.database import Row, Step, T, Work
from homing.database.sqlite.migrations import (
    APPLIED,
    apply,
    check_applied,
    check_length,
    check_ours,
    create,
    prepare_folder,
)
from homing.errors import StoreBusy, StoreClosed, StoreCorrupt, StoreError, StoreReadOnly

logger = logging.getLogger(__name__)

BUSY_MS = 5_000
"""How long a writer waits for a writer of another process."""

POLL = 0.25
"""Seconds between two looks at the version of a file."""

WAL_BYTES = 64 * 1024 * 1024
"""The log is cut back to this size after a large write."""

KEPT = 8
"""Connections that wait for the next reader; each may hold 16 MB of pages, and making another takes 0.1 ms."""

_LIST = re.compile(r"= ANY\(\$(\d+)\)")
_PLACE = re.compile(r"\$(\d+)")


def rows(connection: apsw.Connection, sql: str, bindings: Sequence[Any] = ()) -> list[Row]:
    """What a statement in SQLite's own words answers."""
    return connection.execute(sql, bindings).fetchall()


class SqliteTransaction:
    """A `Transaction` on one connection."""

    __slots__ = ("connection",)
    skip_locked = ""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, *values: Any) -> list[Row]:
        return self.connection.execute(_statement(sql), _bindings(values)).fetchall()

    def each(self, sql: str, many: Iterable[Sequence[Any]]) -> None:
        self.connection.executemany(_statement(sql), map(_bindings, many))

    def notify(self) -> None:
        # `version` says it.
        pass

    def now(self) -> float:
        # The clock of this machine: a file is written by no other.
        return time.time()


class SqliteDatabase:
    """A `Database` in one file. A store in the same file works inside `reading` and `writing`.

    A file that cannot be written is opened for reading; `write` then raises StoreReadOnly. A process that was forked
    after opening must open its own: SQLite's locks do not survive a fork. What is written without `durable` survives
    the end of the process, and not that of the machine.
    """

    is_remote = False

    def __init__(self, path: str | Path, *, durable: bool = True) -> None:
        self.path = Path(path)
        self._durable = durable
        self._process = os.getpid()
        self._closed = False
        self._idle: deque[apsw.Connection] = deque()
        self._write_lock = threading.Lock()
        self._watch_lock = threading.Lock()
        self._watcher: apsw.Connection | None = None
        self._source, self._flags = str(self.path), apsw.SQLITE_OPEN_READWRITE
        prepare_folder(self.path)
        if not self.path.exists():
            create(self.path)
        check_length(self.path)
        with _translated(self.path):
            self._writer = self._open_first()
        self.read_only: bool = self._writer.readonly("main")

    def migrate(self, component: str, steps: Sequence[Step]) -> None:
        with self.reading() as connection:
            if check_applied(connection, self.path, component, len(steps)) == len(steps):
                return
        if self.read_only:
            raise StoreReadOnly(
                f"{self.path} needs an upgrade but cannot be written; make it writable and open it once"
            )
        self.write(lambda transaction: apply(transaction, self.path, component, steps))

    def applied(self, component: str) -> int:
        with self.reading() as connection:
            return int(connection.execute(APPLIED, (component,)).get)

    def read(self, work: Work[T], *, fresh: bool = False) -> T:
        with self.reading() as connection:
            return work(SqliteTransaction(connection))

    def write(self, work: Work[T], scope: str = "", *, awaited: bool = True) -> T:
        # One writer at a time, whatever the scope.
        with self.writing() as connection:
            return work(SqliteTransaction(connection))

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """A connection that sees the file as it is at its first statement, whatever is committed meanwhile."""
        self._check_open()
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._closed or len(self._idle) >= KEPT:
                    connection.close()
                else:
                    self._idle.append(connection)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise _fault(self.path, error) from error

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """The one writer, inside a transaction: committed at the end, rolled back if anything is raised."""
        self._check_open()
        with self._write_lock, _translated(self.path):
            self._check_open()
            if self.read_only:
                raise StoreReadOnly(f"{self.path} was opened for reading only; make the file and its folder writable")
            connection = self._writer
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def version(self) -> int:
        """A number that moves with every commit to the file, by this process or another; asking takes microseconds."""
        self._check_open()
        try:
            with self._watch_lock:
                # SQLite counts the commits of others, so the one who asks must be a connection that never writes.
                if self._watcher is None:
                    self._watcher = self._connect()
                return int(self._watcher.pragma("data_version"))
        except apsw.Error as error:
            raise _fault(self.path, error) from error

    def listen(self, heard: Callable[[], None]) -> float:
        return POLL

    def close(self) -> None:
        """Let go of the file; the log is folded into it. Closing twice is fine."""
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        with self._write_lock, self._watch_lock, _translated(self.path):
            if self._watcher is not None:
                self._watcher.close()
            while self._idle:
                self._idle.pop().close()
            self._writer.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self.path} is closed; open it again")
        if self._process != os.getpid():
            raise StoreError(f"{self.path} was opened before this process was forked; open it again in this process")

    def _open_first(self) -> apsw.Connection:
        try:
            connection = self._connect()
            check_ours(connection, self.path)
            if not connection.readonly("main"):
                _use_log(connection)
            return connection
        except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
            return self._open_unwritable(error)

    def _open_unwritable(self, error: apsw.Error) -> apsw.Connection:
        # A log cannot be kept beside a file in a read-only folder. Without one there, nobody is writing either, and
        # SQLite may be told that the file does not change.
        log = Path(f"{self.path}-wal")
        if log.exists() and log.stat().st_size:
            raise _fault(self.path, error) from error
        self._source = f"file:{quote(str(self.path.absolute()))}?immutable=1"
        self._flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        logger.warning(
            "%s: the folder cannot be written; opened for reading, changes by others are not seen", self.path
        )
        connection = self._connect()
        check_ours(connection, self.path)
        return connection

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self._source, flags=self._flags)
        connection.set_busy_timeout(BUSY_MS)
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        # What is deleted is overwritten: else a text that somebody wanted gone would stay in the file until its room is
        # needed. Writing takes no longer for it, dropping a collection about a sixth.
        connection.execute(
            f"PRAGMA secure_delete = ON; PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}; "
            f"PRAGMA journal_size_limit = {WAL_BYTES}; "
            "PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY"
        ).fetchall()
        return connection


def _use_log(connection: apsw.Connection) -> None:
    # Switching asks for an exclusive lock without waiting for it, so two processes that create a file can collide here.
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


@lru_cache(maxsize=1_000)
def _statement(sql: str) -> str:
    """A statement of ours with SQLite's placeholders."""
    return _PLACE.sub(r"?\1", _LIST.sub(r"IN (SELECT value FROM json_each(?\1))", sql))


def _bindings(values: Iterable[Any]) -> list[Any]:
    """Values as SQLite takes them: a list travels as JSON."""
    return [json.dumps(one) if isinstance(one, list) else one for one in values]


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Whatever SQLite raises inside comes out as a StoreError about this file."""
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as error:
        raise _fault(path, error) from error


def _fault(path: Path, error: apsw.Error | UnicodeDecodeError) -> StoreError:
    """The error of a store that says what happened to this file and what to do next."""
    details = {"path": str(path), "sqlite": str(error)}
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(
                f"{path} is being written by another process; try again, or end that process", details=details
            )
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreCorrupt(
                f"{path} is damaged or is not a database; restore a copy, or move it away and index again",
                details=details,
            )
        case UnicodeDecodeError():
            return StoreCorrupt(
                f"{path} is damaged: a text in it is not what was written; `homing repair` says which, and mends what "
                "can be made anew",
                details=details,
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreReadOnly(f"{path} cannot be written; make the file and its folder writable", details=details)
        case apsw.CantOpenError():
            return StoreError(f"{path} cannot be opened; check that the folder exists and is writable", details=details)
        case apsw.ExtensionLoadingError():
            return StoreError(
                f"{path} needs sqlite-vec, which cannot be loaded: {error}; install it again",
                details={**details, "library": "sqlite-vec"},
            )
        case apsw.FullError():
            return StoreError(f"no room left to write {path}; free some space and try again", details=details)
        case _:
            return StoreError(f"{path}: {error}", details=details)
