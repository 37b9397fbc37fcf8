"""Which files of a folder hold text, and what they say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".org", ".adoc"})
"""File name endings that are taken for text."""

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
MAX_BYTES = 32 * 1024 * 1024


class NotText(ValueError):
    """The file is not text that can be read; the message says why."""


def text_files(folder: Path) -> Iterator[Path]:
    """The text files below a folder, sorted. What is hidden is left out; links are not followed out of the folder."""
    root = folder.resolve()
    for at, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(at, name)
            if name.startswith(".") or path.suffix.lower() not in SUFFIXES:
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                continue
            yield path


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, UTF-16 with its mark, or GB18030; line ends as they stand. Raises NotText."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise NotText(f"larger than {MAX_BYTES // 1024**2} MiB")
        return decode(path.read_bytes())
    except OSError as error:
        raise NotText(error.strerror or "cannot be read") from error


def decode(content: bytes) -> str:
    """Bytes as text. Raises NotText for what no person wrote."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\0" in content:
        raise NotText("binary: it contains NUL bytes")
    else:
        encodings = ["utf-8-sig", "gb18030"]
    for encoding in encodings:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise NotText(f"not text in {' or '.join(encodings)}")
