"""Which files of a folder can be read, and what text files say."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from homing.files import SUFFIXES, TEXT_SUFFIXES
from homing.text.decoding import NotText, decode_any

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
MAX_BYTES = 32 * 1024 * 1024


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
