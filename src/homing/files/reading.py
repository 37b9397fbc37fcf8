"""The one door: a path or bytes in, text out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from homing.errors import FileTooLarge, FileUnreadable, FileWithoutText, InvalidArgument, NotFound
from homing.files import docx, epub, pdf, plain, xlsx
from homing.files.file_text import FileText, Format
from homing.files.formats import format_of
from homing.files.limits import MIB, Counter, Limits
from homing.progress import Progress, no_progress

Reader = Callable[[bytes, str, Limits, Progress], FileText]

READERS: Mapping[Format, Reader] = {
    "txt": plain.read_plain,
    "md": plain.read_markdown,
    "pdf": pdf.read_pdf,
    "docx": docx.read_docx,
    "xlsx": xlsx.read_xlsx,
    "epub": epub.read_epub,
}

_WORD = re.compile(r"\w")


def read_file(
    source: str | os.PathLike[str] | bytes,
    filename: str | None = None,
    *,
    limits: Limits | None = None,
    progress: Progress = no_progress,
) -> FileText:
    """The text of a file at a path, or of its bytes, for which `filename` says what they are.

    `progress` is told of the pages of a PDF and the chapters of a book as they are read; what it raises ends that.

    Raises FileUnreadable, in one of its kinds: UnsupportedFile, FileEncrypted, FileWithoutText, FileTooLarge,
    FileUnsafe, FileDamaged; NotFound where there is no such file; MissingExtra where a library is not installed.
    """
    limits = limits or Limits()
    if isinstance(source, bytes):
        if not filename:
            raise InvalidArgument("bytes need a filename; its ending says how to read them")
        content, name = source, filename
        _check_size(len(content), name, limits)
    else:
        path = Path(source)
        name = filename or path.name
        content = _content(path, limits)
    if not content.strip():
        raise FileWithoutText(f"{name} is empty", details={"filename": name})
    read = READERS[format_of(name, content)](content, name, limits, progress)
    Counter(name, "characters", limits.characters).add(len(read.text))
    if not _WORD.search(read.text):
        raise FileWithoutText(f"{name} has no text in it", details={"filename": name})
    return read


def _content(path: Path, limits: Limits) -> bytes:
    if not path.exists():
        raise NotFound(f"there is no file {path}; check its name and folder")
    # A pipe or a device would be read for ever.
    if not path.is_file():
        raise InvalidArgument(f"{path} is not a file; name one file")
    try:
        _check_size(path.stat().st_size, path.name, limits)
        return path.read_bytes()
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {error.strerror}") from error


def _check_size(size: int, name: str, limits: Limits) -> None:
    if size > limits.bytes:
        raise FileTooLarge(
            f"{name} has {size / MIB:.0f} MiB; at most {limits.bytes / MIB:g} MiB are read: split it",
            details={"limit": limits.bytes, "of": "bytes"},
        )
