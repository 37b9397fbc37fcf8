"""LanceDB and Arrow as we use them: imported late, at an address, with errors of a store, and on the disk.

The libraries are imported when they are first needed: the import takes seconds in every process.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import tempfile
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

from homing.errors import HomingError, InvalidArgument, MissingExtra, StoreBusy, StoreCorrupt, StoreError, StoreReadOnly

ArrowTable = Any
"""A `pyarrow.Table`."""
ArrowSchema = Any
"""A `pyarrow.Schema`."""
Handle = Any
"""A `lancedb.table.Table`: may be used by several threads, reads the newest version at every call."""
Reader = Any
"""A `lancedb.table.AsyncTable`, likewise. LanceDB's other calls go through one of these, several times a search."""
T = TypeVar("T")
LOCK = ".homing.lock"
SECRET = ("key", "secret", "token", "password", "credential", "sas")
"""What the name of an option contains whose value must not be shown."""
PARTS = ("data", "_deletions", "_versions")
"""The folders of a table whose files a commit consists of; the manifests come last."""
_SLACK_NS = 50_000_000
"""File times are taken from a clock that ticks every few milliseconds."""


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

    def quietly() -> None:
        with suppress(MissingExtra):
            lancedb()

    thread = threading.Thread(target=quietly, name="homing-lance-import", daemon=True)
    thread.start()
    return thread


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "LanceDB is not installed; install it with: pip install 'homing[lance]'", details={"extra": "lance"}
        ) from error


@dataclass(frozen=True, slots=True)
class Address:
    """`uri` is what LanceDB is given; `folder` is set where it is one. `options` may hold keys and are never shown."""

    uri: str
    folder: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.uri

    @classmethod
    def of_folder(cls, path: str | Path) -> Address:
        """A folder of this machine."""
        folder = Path(path)
        return cls(str(folder.absolute()), folder)

    @classmethod
    def of_url(cls, url: str) -> Address:
        """`lance://relative/folder`, `lance:///absolute/folder`, or `s3://bucket/prefix?option=value&…`.

        The options are those of Lance's object storage: `endpoint`, `region`, `allow_http`, `aws_access_key_id` … What
        is not given comes from the environment (`AWS_ACCESS_KEY_ID` …), which is where keys belong.
        """
        scheme, _, rest = url.partition("://")
        if scheme == "lance":
            if not rest.strip("/"):
                raise InvalidArgument("'lance://' names no folder; write lance://relative/folder or lance:///absolute")
            return cls.of_folder(unquote(rest))
        place, _, query = rest.partition("?")
        if not place.strip("/"):
            raise InvalidArgument(f"'{scheme}://' names no bucket; write {scheme}://bucket/prefix")
        return cls(f"{scheme}://{place.rstrip('/')}", None, dict(parse_qsl(query, keep_blank_values=True)))

    @property
    def lock(self) -> Path:
        """The file that writers of this machine lock."""
        if self.folder is not None:
            return self.folder / LOCK
        name = hashlib.blake2b(self.uri.encode(), digest_size=12).hexdigest()
        return Path(tempfile.gettempdir()) / f"homing-{name}.lock"

    def redacted(self, text: str) -> str:
        """The text without any value of an option that could be a secret."""
        for key, value in self.options.items():
            name = key.lower()
            if value and not name.endswith("key_id") and any(mark in name for mark in SECRET):
                text = text.replace(value, "***")
        return text


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


@contextmanager
def durable(table: Path | None) -> Iterator[None]:
    """What is committed to the table in this folder inside this block is on the disk when it ends.

    Lance itself leaves that to the operating system. A commit is its data and deletion files, then a manifest that
    names them. Indexes and logs are not waited for: nothing is lost with them. A power cut while a call is under way
    may leave a manifest without its files (StoreCorrupt then, and the older version is still there); after the call has
    returned nothing is lost.
    """
    started = time.time_ns() - _SLACK_NS
    yield
    if table is None or not hasattr(os, "O_DIRECTORY"):
        return
    for name in PARTS:
        folder = table / name
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
