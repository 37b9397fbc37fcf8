"""LanceDB's errors in the words of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from homing.errors import HomingError, StoreBusy, StoreCorrupt, StoreError, StoreReadOnly
from homing.stores.lance.address import Address


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Whatever LanceDB raises inside comes out as a StoreError about this place."""
    try:
        yield
    except HomingError:
        raise
    except (RuntimeError, ValueError, OSError, KeyError, TypeError, NotImplementedError) as error:
        raise fault(address, error) from error


def is_gone(error: BaseException) -> bool:
    """Whether a file or column was missing: it was cleaned up or dropped while it was read, or it is lost."""
    text = str(error.__cause__ or error).lower()
    return any(mark in text for mark in ("not found", "no such file", "no field named", "does not exist in schema"))


def fault(address: Address, error: Exception) -> StoreError:
    """The error of a store that says what happened here and what to do next."""
    text = address.redacted(str(error)).split(", /")[0][:500]
    details = {"path": str(address), "lance": text}
    known = text.lower()
    if isinstance(error, PermissionError) or "permission denied" in known or "read-only file system" in known:
        return StoreReadOnly(f"{address} cannot be written; make the folder writable", details=details)
    if "no space left" in known:
        return StoreError(f"no room left to write {address}; free some space and try again", details=details)
    if "connecterror" in known or "error sending request" in known:
        return StoreError(
            f"{address} cannot be reached; check the endpoint, the region and the network", details=details
        )
    if "commit conflict" in known or "too many concurrent" in known:
        return StoreBusy(f"{address} is being written by others; try again", details=details)
    if is_gone(error) or any(mark in known for mark in ("file size is too small", "invalid range", "magic", "corrupt")):
        return StoreCorrupt(
            f"{address} is damaged: {text}; restore a copy, or move it away and index again", details=details
        )
    return StoreError(f"{address}: {text}", details=details)
