"""What the workers of one server know of each other's callers, so that a limit is one limit: files in a folder.

A worker that is killed lets go of everything it held.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout


@dataclass(frozen=True, slots=True)
class Share:
    """Worker `number` of `count`; they have `folder` in common. What need not be exact is divided among them."""

    number: int = 0
    count: int = 1
    folder: Path | None = None

    def of(self, limit: int) -> int:
        """This worker's part of a limit; the parts of all are the limit, but for one that leaves some with nothing."""
        return max(1, (limit + self.number) // self.count)

    def take(self, name: str, count: int) -> FileLock | None:
        """One of `count` places under a name that all workers have together, to be released; None where all are taken,
        or there is nobody to share with."""
        named = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        for number in range(count) if self.folder else ():
            lock = FileLock(f"{self.folder}/{named}-{number}", thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            return lock
        return None
