"""A SQLite file of vectors by key: bounded, shared by threads and processes, and never worth an error."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import apsw

logger = logging.getLogger(__name__)

LOOKUP = 400
"""Keys asked for in one statement."""
BUSY_MS = 250
"""How long another process may hold the write lock before a write is given up: it is only a cache."""
OPEN_SECONDS = 2.0
"""How long to wait for other processes that create the file at the same time."""
STAMP_SECONDS = 3600
STALE_STAMPS = 24
"""A row that is read is stamped anew once a day at most, so reading does not write."""
KEEP_AFTER_EVICTION = 0.9

_SCHEMA = """
create table if not exists vector (
    id integer primary key,
    key blob not null unique,
    seen integer not null,
    row blob not null
);
create index if not exists vector_seen on vector (seen);
"""


class VectorCache:
    """Bytes by key in one file, at most about `max_bytes` of them; the longest unread go first.

    Nothing here raises: a damaged file is rebuilt, an unwritable one is done without, and either is logged as a
    warning. Safe to use from several threads; several processes may share the file.
    """

    def __init__(self, path: Path | str, *, max_bytes: int) -> None:
        self._path = str(path)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._db = self._open_or_rebuild()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The rows of those keys that are known."""
        found: dict[bytes, bytes] = {}
        stale: list[bytes] = []
        now = _stamp()
        with self._lock:
            try:
                for chunk in _chunks(keys):
                    for key, seen, row in self._rows(chunk):
                        found[key] = row
                        if seen < now - STALE_STAMPS:
                            stale.append(key)
                if stale:
                    self._touch(stale, now)
            except apsw.Error as error:
                self._recover(error)
        return found

    def put(self, rows: Mapping[bytes, bytes]) -> None:
        """Keeps the rows, replacing those of the same key."""
        stamp = _stamp()
        with self._lock:
            if self._db is None:
                return
            try:
                with self._db:
                    self._db.executemany(
                        "insert into vector (key, seen, row) values (?, ?, ?) "
                        "on conflict (key) do update set seen = excluded.seen, row = excluded.row",
                        ((key, stamp, row) for key, row in rows.items()),
                    )
                self._evict()
            except apsw.Error as error:
                self._recover(error)

    def close(self) -> None:
        """Closes the file; afterwards the cache is empty and keeps nothing."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _rows(self, keys: Sequence[bytes]) -> Iterable[tuple[bytes, int, bytes]]:
        if self._db is None:
            return ()
        places = ",".join("?" * len(keys))
        rows: Iterable[tuple[bytes, int, bytes]] = self._db.execute(
            f"select key, seen, row from vector where key in ({places})", keys
        )
        return rows

    def _touch(self, keys: Sequence[bytes], stamp: int) -> None:
        assert self._db is not None
        with self._db:
            for chunk in _chunks(keys):
                places = ",".join("?" * len(chunk))
                self._db.execute(f"update vector set seen = ? where key in ({places})", (stamp, *chunk))

    def _evict(self) -> None:
        assert self._db is not None
        pages, free, size = (int(self._db.pragma(name)) for name in ("page_count", "freelist_count", "page_size"))
        used = (pages - free) * size
        if used <= self._max_bytes:
            return
        count = int(self._db.execute("select count(*) from vector").get)
        surplus = math.ceil(count * (1 - KEEP_AFTER_EVICTION * self._max_bytes / used))
        with self._db:
            self._db.execute(
                "delete from vector where id in (select id from vector order by seen, id limit ?)", (surplus,)
            )

    def _recover(self, error: apsw.Error) -> None:
        if isinstance(error, (apsw.BusyError, apsw.LockedError)):
            logger.debug("embedding cache %s is busy; going on without it for once", self._path)
            return
        if self._db is not None:
            self._db.close(True)
        if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
            self._db = self._rebuild(error)
        else:
            self._db = None
            logger.warning("embedding cache %s cannot be used, going on without it: %s", self._path, error)

    def _open_or_rebuild(self) -> apsw.Connection | None:
        try:
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            return self._open()
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return self._rebuild(error)
        except (apsw.Error, OSError) as error:
            logger.warning("embedding cache %s cannot be used, going on without it: %s", self._path, error)
            return None

    def _rebuild(self, error: apsw.Error) -> apsw.Connection | None:
        logger.warning("embedding cache %s is damaged and is started afresh: %s", self._path, error)
        try:
            for suffix in ("", "-wal", "-shm"):
                Path(self._path + suffix).unlink(missing_ok=True)
            return self._open()
        except (apsw.Error, OSError) as again:
            logger.warning("embedding cache %s cannot be rebuilt, going on without it: %s", self._path, again)
            return None

    def _open(self) -> apsw.Connection:
        give_up = time.monotonic() + OPEN_SECONDS
        while True:
            db = apsw.Connection(self._path)
            try:
                _prepare(db)
                return db
            except apsw.BusyError:
                # Another process is creating the same file, and SQLite does not wait for a change of journal mode.
                db.close(True)
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.02)
            except BaseException:
                db.close(True)
                raise


def _prepare(db: apsw.Connection) -> None:
    db.set_busy_timeout(BUSY_MS)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "normal")
    if not db.execute("select 1 from sqlite_master where name = 'vector'").get:
        db.execute(f"begin immediate; {_SCHEMA} commit")
    # Fails here, before anything is kept, where the file belongs to something else.
    db.execute("select key, seen, row from vector limit 1").fetchall()


def _stamp() -> int:
    return int(time.time()) // STAMP_SECONDS


def _chunks(keys: Sequence[bytes]) -> Iterable[Sequence[bytes]]:
    return (keys[start : start + LOOKUP] for start in range(0, len(keys), LOOKUP))
