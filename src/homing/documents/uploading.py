"""Files as documents: read, cut into windows, and found by words when an upload returns."""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from homing.documents import archive
from homing.documents.archive import Row
from homing.documents.records import Namespace
from homing.documents.reindexing import pages
from homing.documents.writing import SourceFile, Writer
from homing.engine import Engine
from homing.engine.work import INTERACTIVE
from homing.errors import InvalidArgument
from homing.files import Limits, read_file
from homing.progress import IsCanceled, Progress, no_progress
from homing.stores.store import missing_pages

Source = str | os.PathLike[str] | bytes
"""A file: its path, or its content."""
PROJECT = "uploads"
"""The project that uploaded files are documents of."""
PATIENCE = 60.0
"""Seconds that an upload waits for a worker elsewhere that is at its passages already."""
MAX_NAME_BYTES = 255
"""Bytes, as file systems have it."""
# Marks that turn the direction of writing make `exe.fdp` look like another name.
_TURNING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """An uploaded file. `embedded` is false while passages wait for the model: words find them."""

    name: str
    format: str
    characters: int
    chunks: int
    embedded: bool
    uploaded_at: float


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What an upload did. `unchanged` means that the file was there already, with the same text."""

    file: FileInfo
    replaced: bool = False
    unchanged: bool = False
    notes: tuple[str, ...] = ()


class Uploader:
    """Takes in the files of one owner."""

    def __init__(self, engine: Engine, namespace: Namespace, writer: Writer) -> None:
        self._engine = engine
        self._own = namespace
        self._collection = engine.collection(namespace.collection)
        self._writer = writer

    def upload(
        self, source: Source, filename: str | None, limits: Limits | None, report: Progress, canceled: IsCanceled
    ) -> Uploaded:
        """Read a file and keep it; see `DocumentService.upload`."""
        name = file_name(filename if filename is not None else "" if isinstance(source, bytes) else os.fspath(source))
        read = read_file(source, name, limits=limits, progress=report, canceled=canceled)
        before = self._row(name)
        about, planned = SourceFile.of(read, time.time()), lambda chunks: report(0, chunks)
        saved = self._writer.save(PROJECT, name, read.text, priority=INTERACTIVE, about=about, planned=planned)
        row = self._row(name)
        if row is None:
            # Somebody deleted it a moment ago; this is what was written.
            return Uploaded(FileInfo(name, read.format, len(read.text), 0, False, time.time()), notes=read.notes)
        if self._embed(saved.changed, row.chunks, report):
            self._catch_up()
        unchanged = before is not None and before.version == row.version
        info = self._info(row, self._lacking([row]))
        return Uploaded(info, before is not None and not unchanged, unchanged, read.notes)

    def files(self) -> list[FileInfo]:
        """The files, by name."""
        rows = self._rows()
        lacking = self._lacking(rows)
        return [self._info(row, lacking) for row in rows]

    def embed_waiting(self, report: Progress) -> int:
        """Embed now whatever has no vector, also what was given up; returns how many files are complete that were not.

        A model that is down costs a warning.
        """
        rows = self._rows()
        before = self._lacking(rows)
        ids = [one for some in before.values() for one in some]
        if ids and self._engine.models.embeds:
            self._ask(ids)
            self._embed(ids, len(ids), report)
        return len(before) - len(self._lacking(rows))

    def _catch_up(self) -> None:
        """Let files that came while the model was down have their turn, now that it answers."""
        lacking = [one for some in self._lacking(self._rows()).values() for one in some]
        if ids := self._engine.work.unattended(self._own.collection, lacking):
            self._ask(ids)
            if self._engine.background:
                self._collection.notify()
            else:
                self._embed(ids, len(ids), no_progress)

    def _ask(self, ids: Sequence[str]) -> None:
        self._engine.database.write(
            lambda transaction: self._collection.embed_again(ids, transaction), self._collection.scope
        )

    def _embed(self, ids: Sequence[str], total: int, report: Progress) -> bool:
        """Embed these in the calling thread, beside whoever else does; whether they are, and not the model failed."""
        if not self._engine.models.embeds:
            return False
        done, worker = total - len(ids), self._engine.worker
        # In the order in which they are claimed.
        for page in pages(sorted(ids)):
            left = len(page)
            while left and worker.run_batch(early=True, mine=True):
                before, left = left, self._engine.work.untried(self._own.collection, page)
                if 0 < left < before:
                    report(done + len(page) - left, total)
            if not self._engine.wait(self._own.collection, page, PATIENCE):
                return False
            done += len(page)
            report(done, total)
        return True

    def _row(self, name: str) -> Row | None:
        return self._engine.database.read(lambda transaction: archive.find(transaction, self._own.owner, PROJECT, name))

    def _rows(self) -> list[Row]:
        return self._engine.database.read(lambda transaction: archive.rows(transaction, self._own.owner, PROJECT))

    def _lacking(self, rows: Sequence[Row]) -> dict[str, list[str]]:
        """The chunks of these documents that have no vector, by the token of the document."""
        found: dict[str, list[str]] = {row.token: [] for row in rows}
        for one in self._without_vector() if rows else ():
            if one[: archive.TOKEN] in found:
                found[one[: archive.TOKEN]].append(one)
        return {token: some for token, some in found.items() if some}

    def _without_vector(self) -> Iterator[str]:
        store, collection = self._engine.store, self._own.collection
        if not store.pending(collection):
            return
        yield from chain.from_iterable(missing_pages(store, collection, store.model_of(collection)))

    def _info(self, row: Row, lacking: Mapping[str, object]) -> FileInfo:
        about = SourceFile.read(row.about)
        uploaded = about.uploaded_at or row.updated
        return FileInfo(row.id, about.format or "txt", row.characters, row.chunks, row.token not in lacking, uploaded)


def file_name(given: str) -> str:
    """The name without its folders, its characters composed: one file has one name on every system.

    Raises InvalidArgument for a name that is empty, too long, or has characters that nobody can see.
    """
    if not isinstance(given, str):
        raise InvalidArgument(f"a file name is text; got {type(given).__name__}")
    name = unicodedata.normalize("NFC", given.replace("\\", "/").rpartition("/")[2]).strip()
    if name in ("", ".", ".."):
        raise InvalidArgument(f"{given[:80]!r} is not the name of a file; name it like 手册.pdf")
    if any(char in _TURNING or unicodedata.category(char) in ("Cc", "Cs") for char in name):
        raise InvalidArgument(f"the file name {given[:80]!r} has invisible characters; rename the file")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise InvalidArgument(f"the file name {name[:40]}… has more than {MAX_NAME_BYTES} bytes; shorten it")
    return name
