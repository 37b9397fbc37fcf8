"""SQLite's errors in the words of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from homing.errors import StoreBusy, StoreCorrupt, StoreError, StoreReadOnly


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Whatever SQLite raises inside comes out as a StoreError about this file."""
    try:
        yield
    except apsw.Error as error:
        raise fault(path, error) from error


def fault(path: Path, error: apsw.Error) -> StoreError:
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
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreReadOnly(f"{path} cannot be written; make the file and its folder writable", details=details)
        case apsw.CantOpenError():
            return StoreError(f"{path} cannot be opened; check that the folder exists and is writable", details=details)
        case apsw.FullError():
            return StoreError(f"no room left to write {path}; free some space and try again", details=details)
        case _:
            return StoreError(f"{path}: {error}", details=details)
