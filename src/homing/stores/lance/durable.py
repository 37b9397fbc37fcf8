"""What Lance wrote reaches the disk: the library itself leaves that to the operating system.

A commit is its data and deletion files, then a manifest that names them. Indexes and logs are not waited for: nothing
is lost with them. A power cut while a call is under way may leave a manifest without its files (StoreCorrupt then, and
the older version is still there); after the call has returned nothing is lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PARTS = ("data", "_deletions", "_versions")
"""The folders of a table whose files a commit consists of; the manifests come last."""
_SLACK_NS = 50_000_000
"""File times are taken from a clock that ticks every few milliseconds."""


@contextmanager
def durable(table: Path | None) -> Iterator[None]:
    """What is committed to the table in this folder inside this block is on the disk when it ends."""
    started = time.time_ns() - _SLACK_NS
    yield
    if table is None or not hasattr(os, "O_DIRECTORY"):
        return
    for part in PARTS:
        folder = table / part
        if folder.is_dir():
            written = [entry.path for entry in os.scandir(folder) if _modified(entry) >= started]
            for path in [*written, str(folder)] if written else []:
                _flush(path)


def _flush(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # cleaned up meanwhile
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _modified(entry: os.DirEntry[str]) -> int:
    try:
        return 0 if entry.name.endswith(".json") else entry.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
