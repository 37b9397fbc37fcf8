"""What stands around a model in use: vectors are kept, so that no text is embedded twice, and calls are counted."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import apsw
import numpy as np

from homing.database.private import private_file, private_folder
from homing.embedders.provider import EmbeddingProvider, Kind, Wrapper, checked_texts
from homing.errors import DimensionMismatch, HomingError, InvalidArgument, MalformedAnswer
from homing.vectors import Matrix, Vector, pack

logger = logging.getLogger(__name__)

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
"""Upper ends, in seconds, of the classes that calls are counted in; what takes longer is in the last one beyond."""

MAX_BYTES = 1 << 30
MEMORY_BYTES = 8 << 20

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


class Cached(Wrapper):
    """The same provider, which is asked only for texts it has not embedded before.

    Rows are kept in the SQLite file `path` under the provider's identity and a hash of the text, so one file serves
    every collection, model and process; it grows to about `max_bytes`, then the longest unread rows go. The latest rows
    also stay in memory (about `memory_bytes`), where a repeated query costs microseconds. A file that is damaged or
    cannot be written costs a warning and the speed, never an answer.

    `by_kind` says whether the provider embeds queries differently from documents; where it does not, pass False and a
    query finds what a document left, and is itself kept in memory only: embedding it again costs less than writing it.
    Nothing is kept of a call that fails. Who asks for a query that is being embedded waits for that.
    """

    def __init__(
        self,
        provider: EmbeddingProvider,
        path: Path | str,
        *,
        by_kind: bool = True,
        max_bytes: int = MAX_BYTES,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        if max_bytes < 0 or memory_bytes < 0:
            raise InvalidArgument("max_bytes and memory_bytes are sizes and cannot be negative")
        super().__init__(provider)
        self._file = VectorCache(path, max_bytes=max_bytes)
        self._memory = _RecentRows(memory_bytes)
        self._by_kind = by_kind
        self._lock = threading.Lock()
        self._under_way: dict[bytes, Future[dict[bytes, Vector]]] = {}

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text, from memory, from the file, or from the provider, which gets each missing text once."""
        keys = self._keys(checked_texts(texts), kind)
        rows: dict[bytes, Vector] = self._memory.get(keys)
        if missing := _without(keys, texts, rows):
            rows |= self._from_file(list(missing))
        if missing := _without(keys, texts, rows):
            rows |= self._from_provider(missing, kind) if kind == "document" else self._once(missing, kind)
        matrix = np.empty((len(keys), self.dimensions), dtype=np.float32)
        for position, key in enumerate(keys):
            matrix[position] = rows[key]
        return matrix

    def close(self) -> None:
        """Closes the file, and the wrapped provider where it can be closed."""
        self._file.close()
        super().close()

    def _keys(self, texts: Sequence[str], kind: Kind) -> list[bytes]:
        space = f"{self.id}\0{kind if self._by_kind else ''}".encode()
        salt = hashlib.blake2b(space, digest_size=32).digest()
        return [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20, key=salt).digest() for text in texts
        ]

    def _from_file(self, keys: list[bytes]) -> dict[bytes, Vector]:
        width = 4 * self.dimensions
        sound = {
            key: np.frombuffer(row, dtype="<f4").astype(np.float32)
            for key, row in self._file.get(keys).items()
            if len(row) == width
        }
        # A row that is not of unit length was not written by us: embed the text again.
        rows = {key: row for key, row in sound.items() if abs(float(row @ row) - 1) < 1e-3}
        self._memory.put(rows)
        return rows

    def _once(self, missing: Mapping[bytes, str], kind: Kind) -> dict[bytes, Vector]:
        """What the provider answers, or is about to answer to somebody else: several sources are asked one question."""
        key = b"".join(missing)
        with self._lock:
            mine = key not in self._under_way
            answer = self._under_way.setdefault(key, Future())
        if not mine:
            return answer.result()
        try:
            answer.set_result(self._from_provider(missing, kind))
        except BaseException as error:
            answer.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[key]
        return answer.result()

    def _from_provider(self, missing: Mapping[bytes, str], kind: Kind) -> dict[bytes, Vector]:
        answer = self._provider.embed(list(missing.values()), kind=kind)
        if answer.ndim != 2 or len(answer) != len(missing):
            raise MalformedAnswer(f"{self.id}: asked for {len(missing)} vectors, got an array of shape {answer.shape}")
        if answer.shape[1] != self.dimensions:
            raise DimensionMismatch(
                f"{self.id}: got vectors of {answer.shape[1]} dimensions where {self.dimensions} are expected",
                details={"expected": self.dimensions, "actual": int(answer.shape[1])},
            )
        rows = {key: row.copy() for key, row in zip(missing, answer, strict=True)}
        self._memory.put(rows)
        if kind == "document" or self._by_kind:
            self._file.put({key: pack(row) for key, row in rows.items()})
        return rows


class _RecentRows:
    """The rows that were used last, up to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._rows: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        found: dict[bytes, Vector] = {}
        with self._lock:
            for key in keys:
                if (row := self._rows.get(key)) is not None:
                    self._rows.move_to_end(key)
                    found[key] = row
        return found

    def put(self, rows: Mapping[bytes, Vector]) -> None:
        with self._lock:
            for key, row in rows.items():
                if (old := self._rows.pop(key, None)) is not None:
                    self._bytes -= old.nbytes
                self._rows[key] = row
                self._bytes += row.nbytes
            while self._bytes > self._max_bytes:
                _, old = self._rows.popitem(last=False)
                self._bytes -= old.nbytes


def _without(keys: Sequence[bytes], texts: Sequence[str], rows: Mapping[bytes, Vector]) -> dict[bytes, str]:
    return {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}


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
        self._db = self._replacement(error)

    def _open_or_rebuild(self) -> apsw.Connection | None:
        try:
            private_folder(Path(self._path).parent)
            private_file(Path(self._path))
            return self._open()
        except (apsw.Error, OSError) as error:
            return self._replacement(error)

    def _replacement(self, error: Exception) -> apsw.Connection | None:
        """A new file in place of a damaged one; nothing where the file cannot be used for another reason."""
        if not isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
            logger.warning("embedding cache %s cannot be used, going on without it: %s", self._path, error)
            return None
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


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen until now. `last_failure` is the code of the latest call, where that failed."""

    calls: int
    texts: int
    seconds: float
    by_bound: tuple[int, ...]
    failures: Mapping[str, int]
    last_failure: str | None


class Observed(Wrapper):
    """The same provider, under observation. Safe to call from several threads; costs a microsecond."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
        self._lock = threading.Lock()
        self._calls = self._texts = 0
        self._seconds = 0.0
        self._by_bound = [0] * (len(BOUNDS) + 1)
        self._failures: Counter[str] = Counter()
        self._last_failure: str | None = None

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """What the wrapped provider gives."""
        started = time.perf_counter()
        code: str | None = "INTERNAL_ERROR"
        try:
            rows = super().embed(texts, kind=kind)
            code = None
            return rows
        except HomingError as error:
            code = error.code
            raise
        finally:
            self._count(len(texts), time.perf_counter() - started, code)

    @property
    def seen(self) -> Observation:
        """What was seen until now."""
        with self._lock:
            return Observation(
                self._calls,
                self._texts,
                self._seconds,
                tuple(self._by_bound),
                dict(self._failures),
                self._last_failure,
            )

    def _count(self, texts: int, seconds: float, code: str | None) -> None:
        with self._lock:
            self._calls += 1
            self._texts += texts
            self._seconds += seconds
            self._by_bound[bisect_left(BOUNDS, seconds)] += 1
            self._last_failure = code
            if code is not None:
                self._failures[code] += 1
