"""A database file: made in one step, recognised as ours, and grown by numbered steps.

A new file is made aside and put in place, so whoever looks sees no file or a whole one. Several components keep their
tables in one file (the store, the queue, documents, models); each numbers its own steps, which are applied once and
never changed after a release. `migrations` remembers which were applied. A file made by a newer Homing is refused
rather than misread.
"""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import apsw

from homing.database.database import Step, Transaction
from homing.database.private import FILE, close, private_folder
from homing.database.steps import apply_steps, check_known
from homing.errors import InvalidArgument, StoreCorrupt, StoreReadOnly, StoreTooNew, StoreTooOld

APPLICATION_ID = 0x484F4D49
"""Marks a file as ours: HOMI."""

FORMAT = 4
"""`user_version`: how the file as a whole is laid out. Components evolve without changing it."""

APPLIED = "SELECT coalesce(max(number), 0) FROM migrations WHERE component = ?"
"""How many steps of a component were applied."""

TYPES = {
    "INT64": "INTEGER",
    "FLOAT64": "REAL",
    "BYTES": "BLOB",
    "IDENTITY": "INTEGER PRIMARY KEY AUTOINCREMENT",
}


def prepare_folder(path: Path) -> None:
    """Make the folder that a file is to be in."""
    try:
        is_folder = path.is_dir()
    except PermissionError as error:
        raise StoreReadOnly(
            f"{path} cannot be read: {error.strerror}; it belongs to another user", details={"path": str(path)}
        ) from error
    if is_folder:
        raise InvalidArgument(f"{path} is a folder; give the path of a file in it, like {path / 'homing.db'}")
    try:
        private_folder(path.parent)
        for suffix in ("", "-wal", "-shm"):
            close(Path(f"{path}{suffix}"), FILE)
    except OSError as error:
        raise StoreReadOnly(
            f"the folder {path.parent} cannot be created: {error.strerror}", details={"path": str(path)}
        ) from error


def check_length(path: Path) -> None:
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


def create(path: Path) -> None:
    """Make an empty database; where somebody else was faster, theirs stays."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        # For whoever runs this alone: it will hold what people write.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _fill(draft)
        _put_in_place(draft, path)
    except OSError as error:
        raise StoreReadOnly(
            f"{path} cannot be created; make the folder {path.absolute().parent} writable",
            details={"path": str(path)},
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _fill(draft: Path) -> None:
    connection = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        with connection:
            connection.execute(
                "CREATE TABLE migrations(component TEXT NOT NULL, number INTEGER NOT NULL, "
                "applied TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY(component, number)) WITHOUT ROWID"
            )
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", FORMAT)
    finally:
        # The log is folded into the file and removed.
        connection.close()


def _put_in_place(draft: Path, path: Path) -> None:
    with suppress(FileExistsError):
        try:
            os.link(draft, path)
        except OSError as error:
            if isinstance(error, FileExistsError) or path.exists():
                raise FileExistsError from error
            # A file system without links; of two processes that create the file here at once, the second wins.
            draft.rename(path)


def check_ours(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that is not ours, or of another format than ours."""
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    details = {"path": str(path), "found": version, "known": FORMAT}
    if application != APPLICATION_ID:
        raise StoreCorrupt(
            f"{path} is an SQLite database but not a Homing store; give another path", details={"path": str(path)}
        )
    if version > FORMAT:
        raise StoreTooNew(
            f"{path} has format {version}, this Homing knows {FORMAT}; upgrade Homing to open it", details=details
        )
    if version < FORMAT:
        raise StoreTooOld(
            f"{path} was made by an earlier edition of Homing, which this one does not read; "
            "move the folder away and add your texts again",
            details=details,
        )


def check_applied(connection: apsw.Connection, path: Path, component: str, known: int) -> int:
    """How many steps were applied; refuses more than this Homing knows."""
    return check_known(str(path), component, int(connection.execute(APPLIED, (component,)).get), known)


def apply(transaction: Transaction, path: Path, component: str, steps: Sequence[Step]) -> None:
    """Apply the steps that were not applied yet, perhaps by another process a moment ago."""
    connection: apsw.Connection = transaction.connection
    done = check_applied(connection, path, component, len(steps))

    def remember(number: int) -> None:
        connection.execute("INSERT INTO migrations(component, number) VALUES (?, ?)", (component, number))

    # Tables refuse values of another type than they were declared with.
    apply_steps(transaction, steps, done, TYPES, remember, table_end=" STRICT")
