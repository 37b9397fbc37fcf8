"""Which files of a folder hold text, and what they say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from homing.files import TEXT_SUFFIXES
from homing.text.decoding import NotText, decode_any

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
MAX_BYTES = 32 * 1024 * 1024


def text_files(folder: Path) -> Iterator[Path]:
    """The text files below a folder, sorted. What is hidden is left out; links are not followed out of the folder."""
    root = folder.resolve()
    for at, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(at, name)
            if name.startswith(".") or path.suffix.lower() not in TEXT_SUFFIXES:
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                continue
            yield path


def read_text(path: Path) -> str:
    """The text of a file, in whatever encoding a person's editor writes; line ends as they stand. Raises NotText."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise NotText(f"larger than {MAX_BYTES // 1024**2} MiB")
        return decode_any(path.read_bytes()).text
    except OSError as error:
        raise NotText(error.strerror or "cannot be read") from error
