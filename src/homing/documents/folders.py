"""Folders of files as documents: imported once, or followed by a project whose documents say what the files say."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homing.database import Row, Transaction
from homing.documents.records import FOLDER
from homing.documents.writing import Saved
from homing.engine import Engine
from homing.engine.search import HybridOptions
from homing.engine.work import IMPORT
from homing.errors import FileUnreadable, InvalidArgument, NotFound
from homing.files import SUFFIXES, TEXT_SUFFIXES, Limits, read_file
from homing.progress import Progress
from homing.records import Hit, Retrieved
from homing.text.decoding import NotText, decode_any

if TYPE_CHECKING:
    from homing.documents.service import DocumentService

COMPONENT = "followed_files"
STEPS = (
    """
    CREATE TABLE followed_files(
        project TEXT NOT NULL, document TEXT NOT NULL, size INT64 NOT NULL, modified INT64 NOT NULL,
        seen INT64 NOT NULL, PRIMARY KEY(project, document));
    """,
    """
    ALTER TABLE followed_files RENAME TO followed_files_of_one;
    CREATE TABLE followed_files(
        user_id TEXT NOT NULL, project TEXT NOT NULL, document TEXT NOT NULL, size INT64 NOT NULL,
        modified INT64 NOT NULL, seen INT64 NOT NULL, PRIMARY KEY(user_id, project, document));
    INSERT INTO followed_files SELECT '', project, document, size, modified, seen FROM followed_files_of_one;
    DROP TABLE followed_files_of_one;
    """,
)
# A file written in the same instant as it was read may change again without its time stamp moving.
SETTLED_NS = 2_000_000_000
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
MAX_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that could not be read, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class Refreshed:
    """What bringing the project up to date did. `embedded` is false while vectors are missing: words answer then."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages: int = 0
    embedded: bool = True
    skipped: list[Skipped] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Size and times (nanoseconds) of a file when it was last read."""

    size: int
    modified: int
    seen: int

    def looks_unchanged(self, size: int, modified: int) -> bool:
        return (self.size, self.modified) == (size, modified) and modified + SETTLED_NS < self.seen


class FollowedFolder:
    """The text files below a folder, as documents of a project named after it.

    `refresh` reads only files whose size or time changed and embeds only paragraphs that are new. It may be killed at
    any moment: what it had not finished it does again the next time.
    """

    def __init__(self, folder: Path, *, documents: DocumentService, engine: Engine) -> None:
        if not folder.is_dir():
            raise NotFound(f"there is no folder {folder}; name a folder with .md or .txt files")
        self.folder = folder.resolve()
        self.project = f"{FOLDER}{self.folder}"
        self._documents = documents
        self._engine = engine
        engine.database.migrate(COMPONENT, STEPS)

    def refresh(self, progress: Progress | None = None) -> Refreshed:
        """Make the project say what the files say now, and embed what is new."""
        report = Refreshed()
        stamps = "SELECT document, size, modified, seen FROM followed_files WHERE user_id = $1 AND project = $2"
        known = {name: _Stamp(*rest) for name, *rest in self._rows(self._engine.database.read, stamps)}
        there = {one.id for one in self._documents.documents(self.project)}
        paths = {path.relative_to(self.folder).as_posix(): path for path in text_files(self.folder)}
        for name in sorted((there | known.keys()) - paths.keys()):
            report.removed += self._documents.delete(self.project, name)
            forget = "DELETE FROM followed_files WHERE user_id = $1 AND project = $2 AND document = $3"
            self._rows(self._engine.database.write, forget, name)
        for done, (name, path) in enumerate(paths.items(), start=1):
            self._follow(name, path, known.get(name) if name in there else None, name in there, report)
            if progress is not None:
                progress(done, len(paths))
        if self._engine.work.waiting():
            self._engine.flush()
        report.embedded = not self._engine.models.embeds or not self._documents.waiting(self.project)
        return report

    def search(self, query: str, options: HybridOptions | None = None) -> Retrieved:
        """The passages a query is about; metadata has `path`, `line`, `start` and `end` (character offsets)."""
        asked = options or HybridOptions()
        found = self._documents.search(
            self.project, query, mode=asked.mode, top_k=asked.limit, min_score=asked.min_score
        )
        names = {hit.metadata["document_id"] for hit in found}
        texts = {name: self._documents.text(self.project, name) for name in names}
        return found.with_hits([_placed(hit, texts[hit.metadata["document_id"]]) for hit in found])

    def _follow(self, name: str, path: Path, stamp: _Stamp | None, there: bool, report: Refreshed) -> None:
        try:
            stat = path.stat()
            if stamp is not None and stamp.looks_unchanged(stat.st_size, stat.st_mtime_ns):
                report.unchanged += 1
                return
            seen = time.time_ns()
            text = read_text(path)
        except (NotText, OSError) as error:
            report.skipped.append(Skipped(name, str(error)))
            return
        saved = self._documents.save(self.project, name, text, priority=IMPORT)
        if there and not (saved.changed or saved.moved or saved.removed):
            report.unchanged += 1
        elif there:
            report.changed += 1
        else:
            report.added += 1
        report.passages += len(saved.changed)
        # The stamp comes last: a file counts as read only when everything about it is in place.
        self._rows(
            self._engine.database.write,
            "INSERT INTO followed_files(user_id, project, document, size, modified, seen) "
            "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT(user_id, project, document) DO UPDATE SET "
            "size = excluded.size, modified = excluded.modified, seen = excluded.seen",
            *(name, stat.st_size, stat.st_mtime_ns, seen),
        )

    def _rows(self, run: Callable[[Callable[[Transaction], list[Row]]], list[Row]], sql: str, *more: Any) -> list[Row]:
        return run(lambda transaction: transaction.rows(sql, self._engine.user, self.project, *more))


def _placed(hit: Hit, text: str) -> Hit:
    start, end = hit.metadata["start_offset"], hit.metadata["end_offset"]
    place = {"path": hit.metadata["document_id"], "line": text.count("\n", 0, start) + 1, "start": start, "end": end}
    return replace(hit, metadata=place)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that could not be imported, by its path below the folder, and why."""

    path: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: documents that were written, that said the same already, and files that were left out.

    `notes` say what a person should know about single files: characters that could not be read, pages without text.
    """

    documents: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    notes: tuple[str, ...] = ()
    chunks: int = 0


def import_folder(
    folder: Path, save: Callable[[str, str], Saved], progress: Progress | None, limits: Limits | None
) -> Imported:
    """Save every readable file below a folder, named by its path there; one bad file never stops the others."""
    if not folder.exists():
        raise NotFound(f"there is no folder {folder}; name a folder with {', '.join(sorted(SUFFIXES))} files")
    if not folder.is_dir():
        raise InvalidArgument(f"{folder} is not a folder; name the folder it is in")
    paths = list(files_below(folder))
    written: list[str] = []
    unchanged: list[str] = []
    skipped: list[SkippedFile] = []
    notes: list[str] = []
    chunks = 0
    for done, path in enumerate(paths):
        if progress is not None:
            progress(done, len(paths))
        name = path.relative_to(folder.resolve()).as_posix()
        try:
            read = read_file(path, limits=limits)
        except (FileUnreadable, NotFound, InvalidArgument) as error:
            skipped.append(SkippedFile(name, error.code, error.message))
            continue
        saved = save(name, read.text)
        notes += [f"{name}: {note}" for note in read.notes]
        chunks += len(saved.changed) + len(saved.unchanged) + len(saved.moved)
        touched = saved.changed or saved.moved or saved.removed
        (written if touched else unchanged).append(name)
    if progress is not None:
        progress(len(paths), len(paths))
    return Imported(tuple(written), tuple(unchanged), tuple(skipped), tuple(notes), chunks)


def files_below(folder: Path, suffixes: Collection[str] = SUFFIXES) -> Iterator[Path]:
    """The files that can be read, sorted. What is hidden is left out; links are not followed out of the folder."""
    root = folder.resolve()
    for at, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(at, name)
            if name.startswith((".", "~$")) or path.suffix.lower() not in suffixes:
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                continue
            yield path


def text_files(folder: Path) -> Iterator[Path]:
    """The plain text files below a folder, sorted."""
    return files_below(folder, TEXT_SUFFIXES)


def read_text(path: Path) -> str:
    """The text of a file, in whatever encoding a person's editor writes; line ends as they stand. Raises NotText."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise NotText(f"larger than {MAX_BYTES // 1024**2} MiB")
        return decode_any(path.read_bytes()).text
    except OSError as error:
        raise NotText(error.strerror or "cannot be read") from error
