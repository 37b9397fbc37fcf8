"""A new file, made aside and put in place in one step: whoever looks sees no file or a whole one."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import apsw

from homing.database.sqlite.migrations import mark
from homing.errors import StoreReadOnly


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
            mark(connection)
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
