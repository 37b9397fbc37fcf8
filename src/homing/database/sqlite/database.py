"""One SQLite file, shared by the threads of this process and by other processes.

One connection writes, guarded by a lock; readers borrow connections from a pool and each sees one snapshot. The journal
is a write-ahead log, so readers never wait for the writer nor the writer for them. Every commit is synced to the disk
(`synchronous=FULL`): what was returned survives `kill -9` and a power cut. `NORMAL` would survive only the first.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import sqlite_vec  # type: ignore[import-untyped]

from homing.database.database import Row, Step, T, Work
from homing.database.sqlite.creation import create
from homing.database.sqlite.faults import fault, translated
from homing.database.sqlite.migrations import applied, check_ours, migrate
from homing.database.sqlite.statements import statement, value
from homing.errors import InvalidArgument, StoreClosed, StoreCorrupt, StoreError, StoreReadOnly

logger = logging.getLogger(__name__)

BUSY_MS = 5_000
"""How long a writer waits for a writer of another process."""

WAL_BYTES = 64 * 1024 * 1024
"""The log is cut back to this size after a large write."""


class SqliteTransaction:
    """A `Transaction` on one connection."""

    __slots__ = ("connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """What a statement answers."""
        return self.connection.execute(statement(sql), [value(one) for one in values]).fetchall()

    def each(self, sql: str, many: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each set of values."""
        self.connection.executemany(statement(sql), ([value(one) for one in values] for values in many))

    def now(self) -> float:
        """The clock of this machine: a file is written by no other."""
        return time.time()


class SqliteDatabase:
    """A `Database` in one file. A store in the same file works inside `reading` and `writing`.

    A file that cannot be written is opened for reading; `write` then raises StoreReadOnly. A process that was forked
    after opening must open its own: SQLite's locks do not survive a fork.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._process = os.getpid()
        self._closed = False
        self._idle: deque[apsw.Connection] = deque()
        self._write_lock = threading.Lock()
        self._watch_lock = threading.Lock()
        self._watcher: apsw.Connection | None = None
        self._source, self._flags = str(self.path), apsw.SQLITE_OPEN_READWRITE
        _prepare_folder(self.path)
        if not self.path.exists():
            create(self.path)
        _check_length(self.path)
        with translated(self.path):
            self._writer = self._open_first()
        self.read_only: bool = self._writer.readonly("main")

    def migrate(self, component: str, steps: Sequence[Step]) -> None:
        """Bring a component's tables up to date; see `migrations`."""
        self._check_open()
        with self._write_lock, translated(self.path):
            migrate(SqliteTransaction(self._writer), self.path, component, steps)

    def applied(self, component: str) -> int:
        """How many steps of a component were applied; see `Database.applied`."""
        with self.reading() as connection:
            return applied(connection, component)

    def read(self, work: Work[T]) -> T:
        """What the work answers; see `Database.read`."""
        with self.reading() as connection:
            return work(SqliteTransaction(connection))

    def write(self, work: Work[T], scope: str = "") -> T:
        """What the work answers, committed; see `Database.write`. One writer at a time, whatever the scope."""
        with self.writing() as connection:
            return work(SqliteTransaction(connection))

    @contextmanager
    def reading(self, *, fresh: bool = False) -> Iterator[apsw.Connection]:
        """A connection that sees the file as it is at its first statement, whatever is committed meanwhile.

        A `fresh` one has read nothing before.
        """
        self._check_open()
        with translated(self.path):
            try:
                connection = self._connect() if fresh else self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._closed:
                    connection.close()
                else:
                    self._idle.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[tuple[apsw.Connection, int | None]]:
        """As `reading`, with the version of what the connection sees; None where somebody wrote at this very moment."""
        with self.reading() as connection:
            before = self.version()
            # What is read first fixes what the transaction sees.
            connection.pragma("data_version")
            yield connection, before if self.version() == before else None

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """The one writer, inside a transaction: committed at the end, rolled back if anything is raised."""
        self._check_open()
        with self._write_lock, translated(self.path):
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
        with self._watch_lock, translated(self.path):
            # SQLite counts the commits of others, so the one who asks must be a connection that never writes.
            if self._watcher is None:
                self._watcher = self._connect()
            return int(self._watcher.pragma("data_version"))

    def close(self) -> None:
        """Let go of the file; the log is folded into it. Closing twice is fine."""
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        with self._write_lock, self._watch_lock, translated(self.path):
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
            raise fault(self.path, error) from error
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
            f"PRAGMA secure_delete = ON; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = {WAL_BYTES}; "
            "PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY"
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


def _prepare_folder(path: Path) -> None:
    if path.is_dir():
        raise InvalidArgument(f"{path} is a folder; give the path of a file in it, like {path / 'homing.db'}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreReadOnly(
            f"the folder {path.parent} cannot be created: {error.strerror}", details={"path": str(path)}
        ) from error


def _check_length(path: Path) -> None:
    """A file shorter than its header says was cut off; SQLite itself would notice only when it reads a missing page.

    Where a log exists the file may rightly be short: the missing pages are in the log.
    """
    if not path.exists() or Path(f"{path}-wal").exists():
        return
    try:
        with path.open("rb") as file:
            header = file.read(32)
            size = file.seek(0, os.SEEK_END)
    except PermissionError as error:
        raise StoreReadOnly(f"{path} cannot be read: {error.strerror}", details={"path": str(path)}) from error
    if not size:
        # A new file is made aside and renamed, so nobody ever sees an empty one of ours.
        raise StoreCorrupt(f"{path} is empty; restore a copy, or move it and begin anew", details={"path": str(path)})
    if size < 100 or not header.startswith(b"SQLite format 3\0"):
        raise StoreCorrupt(f"{path} is not a database; give another path, or move it away", details={"path": str(path)})
    page, pages = struct.unpack(">H", header[16:18])[0], struct.unpack(">I", header[28:32])[0]
    expected = (65536 if page == 1 else page) * pages
    if size < expected and not Path(f"{path}-wal").exists():
        raise StoreCorrupt(
            f"{path} is cut off: {size} of {expected} bytes are there; restore a copy, or move it and index again",
            details={"path": str(path), "bytes": size, "expected": expected},
        )
