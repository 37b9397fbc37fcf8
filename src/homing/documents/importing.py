"""Folders of files as documents of a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from homing.documents.folder_files import files_below
from homing.documents.saved import Saved
from homing.errors import FileUnreadable, InvalidArgument, MissingExtra, NotFound
from homing.files import SUFFIXES, read_file
from homing.progress import Progress


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


def import_folder(folder: Path, save: Callable[[str, str], Saved], progress: Progress | None) -> Imported:
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
            read = read_file(path)
        except (FileUnreadable, NotFound, MissingExtra, InvalidArgument) as error:
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
