"""What the workers of one server know of each other's callers, so that a limit is one limit: files in a folder.

A worker that is killed lets go of everything it held.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

ENTRY = struct.Struct("<8sdd")
"""Who, how much is left, and when that was."""
PER_ROW = 8
ROWS = 1250


@dataclass(frozen=True, slots=True)
class Share:
    """Worker `number` of `count`; they have `folder` in common. What need not be exact is divided among them."""

    number: int = 0
    count: int = 1
    folder: Path | None = None

    def of(self, limit: int) -> int:
        """This worker's part of a limit; the parts of all are the limit, but for one that leaves some with nothing."""
        return max(1, (limit + self.number) // self.count)

    def slots(self, name: str, count: int) -> Slots:
        """`count` places under a name, for all workers together."""
        return Slots(self.folder, name, count)


class Slots:
    """Places that processes take and give back."""

    def __init__(self, folder: Path | None, name: str, count: int) -> None:
        named = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        self._files = [] if folder is None else [folder / f"{named}-{number}" for number in range(count)]

    def take(self) -> FileLock | None:
        """One that is free, to be released; None where all are taken."""
        for file in self._files:
            lock = FileLock(file, thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            return lock
        return None

    @property
    def alone(self) -> bool:
        """Whether there is nobody to share with."""
        return not self._files


class Buckets:
    """How much each caller has left, and since when; of some ten thousand, the latest. For one thread of a process."""

    def __init__(self, folder: Path | None) -> None:
        size = ROWS * PER_ROW * ENTRY.size
        self._lock: AbstractContextManager[object]
        # So that nobody can choose whose place to take.
        self._salt = os.urandom(16) if folder is None else folder.name.encode()[-64:]
        if folder is None:
            self._lock, self._table = nullcontext(), mmap.mmap(-1, size)
        else:
            self._lock = FileLock(folder / "buckets.lock", thread_local=False)
            with self._lock, (folder / "buckets").open("a+b") as file:
                file.truncate(size)
                self._table = mmap.mmap(file.fileno(), size)

    @contextmanager
    def of(self, caller: str) -> Iterator[Bucket]:
        """What a caller has; nobody else changes it meanwhile, and what it is at the end is kept."""
        key = hashlib.blake2b(caller.encode("utf-8", "surrogatepass"), digest_size=8, key=self._salt).digest()
        with self._lock:
            place, bucket = self._find(key)
            yield bucket
            assert bucket.left is not None
            ENTRY.pack_into(self._table, place, key, bucket.left, bucket.at)

    def _find(self, key: bytes) -> tuple[int, Bucket]:
        first = int.from_bytes(key[:4], "little") % ROWS * PER_ROW * ENTRY.size
        places = [first + at * ENTRY.size for at in range(PER_ROW)]
        found = {place: ENTRY.unpack_from(self._table, place) for place in places}
        for place, (known, left, at) in found.items():
            if known == key:
                return place, Bucket(left, at)
        # Who was idle for longest is forgotten, and begins with a full bucket as it would anyway.
        return min(places, key=lambda place: found[place][2]), Bucket(None, 0.0)


@dataclass(slots=True)
class Bucket:
    """`left` is None for a caller that is new."""

    left: float | None
    at: float
