"""LanceDB and Arrow, imported when they are first needed: the import takes seconds in every process."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from homing.errors import MissingExtra

ArrowTable = Any
"""A `pyarrow.Table`."""
ArrowSchema = Any
"""A `pyarrow.Schema`."""
Handle = Any
"""A `lancedb.table.Table`: may be used by several threads, reads the newest version at every call."""
Reader = Any
"""A `lancedb.table.AsyncTable`, likewise. LanceDB's other calls go through one of these, several times a search."""

T = TypeVar("T")


def lancedb() -> Any:
    """The library."""
    return _imported("lancedb")


def arrow() -> Any:
    """Its data format."""
    return _imported("pyarrow")


def part(name: str) -> Any:
    """A module of the library: `part("index")` is `lancedb.index`."""
    return _imported(f"lancedb.{name}")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Wait for work on readers. It is done in LanceDB's event loop: one change of threads, however many calls."""
    found: T = part("background_loop").LOOP.run(work)
    return found


def preload() -> threading.Thread:
    """Begin the import in a thread, where the first search should not wait for it. Nothing happens if it is missing."""
    thread = threading.Thread(target=_quietly, name="homing-lance-import", daemon=True)
    thread.start()
    return thread


def _quietly() -> None:
    try:
        lancedb()
    except MissingExtra:
        return


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "LanceDB is not installed; install it with: pip install 'homing[lance]'", details={"extra": "lance"}
        ) from error
