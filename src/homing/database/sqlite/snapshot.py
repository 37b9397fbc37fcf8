"""A copy of a database file as it is at one moment, while others write to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from homing.database.sqlite.database import SqliteDatabase
from homing.errors import StoreError

PAGES = 2_000
"""Pages that are copied between two reports: eight megabytes."""


def snapshot(database: SqliteDatabase, target: Path, progress: Callable[[int, int], None]) -> None:
    """Write a new file with everything that is committed when this begins; writers are not held up.

    The file is on the disk when this returns, and has no log beside it. `progress` is called with bytes done, of all.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    copy = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with database.reading() as source:
            # The first read settles which commit this transaction sees. A backup that began without one would start
            # again at every commit of another process, and under a steady writer never end.
            page = int(source.execute("PRAGMA page_size").get)
            source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            with copy.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(PAGES)
                    progress((backup.page_count - backup.remaining) * page, backup.page_count * page)
    except apsw.Error as error:
        raise StoreError(f"{target} cannot be written: {error}; free some space, or choose another place") from error
    finally:
        copy.close()
    with target.open("rb") as written:
        os.fsync(written.fileno())
