"""The one door: a path or bytes in, text out."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from homing.errors import (
    FileDamaged,
    FileTooLarge,
    FileUnreadable,
    FileWithoutText,
    InvalidArgument,
    NotFound,
    UnsupportedFile,
)
from homing.files.file_text import MIB, Counter, FileText, Format, Limits
from homing.progress import IsCanceled, Progress, never, no_progress
from homing.text.decoding import NotText, decode_any

_TEXT: dict[str, Format] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), "md"),
    **dict.fromkeys((".txt", ".text", ".rst", ".org", ".adoc"), "txt"),
}
TEXT_SUFFIXES = frozenset(_TEXT)
"""File name endings that are taken for plain text."""

_ALL: dict[str, Format] = {**_TEXT, ".pdf": "pdf", ".docx": "docx", ".xlsx": "xlsx", ".xlsm": "xlsx", ".epub": "epub"}
SUFFIXES = frozenset(_ALL)
"""File name endings that `read_file` reads."""

_INSTEAD = {
    **dict.fromkeys((".doc", ".rtf", ".odt", ".wps", ".docm", ".pages"), "save it as .docx"),
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".et", ".csv", ".numbers"), "save it as .xlsx"),
    **dict.fromkeys((".ppt", ".pptx", ".odp", ".dps", ".key"), "export it as .pdf"),
    **dict.fromkeys((".mobi", ".azw", ".azw3"), "convert it to .epub"),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".heic"), "run OCR on it and save the text"),
}

_WORD = re.compile(r"\w")


def suffix_of(filename: str) -> str:
    """The ending of a file name in small letters, whichever way its folders are written."""
    return PurePosixPath(filename.replace("\\", "/").strip()).suffix.lower()


def format_of(filename: str, content: bytes) -> Format:
    """The kind of a file. Without an ending in its name it is known by how it begins. Raises UnsupportedFile."""
    suffix = suffix_of(filename)
    if suffix in _ALL:
        return _ALL[suffix]
    if not suffix:
        return _by_content(content)
    known = ", ".join(sorted(SUFFIXES))
    advice = _INSTEAD.get(suffix, f"it may be one of: {known}")
    raise UnsupportedFile(f"{filename}: files of type {suffix} cannot be read; {advice}", details={"suffix": suffix})


def _by_content(content: bytes) -> Format:
    if content.lstrip()[:5] == b"%PDF-":
        return "pdf"
    if not content.startswith(b"PK\x03\x04"):
        return "txt"
    # The directory of an archive stands at its end and holds the names as they are.
    if b"word/document.xml" in content:
        return "docx"
    return "xlsx" if b"xl/workbook.xml" in content else "epub"


def _plain(content: bytes, filename: str, form: Format) -> FileText:
    """A text or Markdown as it stands, in whatever encoding: its marks are part of what is shown again."""
    try:
        decoded = decode_any(content)
    except NotText as error:
        raise FileDamaged(f"{filename} is not text: {error}", details={"filename": filename}) from error
    notes = (f"{decoded.replaced} characters could not be read",) if decoded.replaced else ()
    return FileText(decoded.text, form, filename, notes=notes)


def read_file(
    source: str | os.PathLike[str] | bytes,
    filename: str | None = None,
    *,
    limits: Limits | None = None,
    progress: Progress = no_progress,
    canceled: IsCanceled = never,
) -> FileText:
    """The text of a file at a path, or of its bytes, for which `filename` says what they are.

    What is not plain text is read by a process of its own, which is killed when it takes more than `limits` allow.
    `progress` is told of the pages of a PDF and the chapters of a book as they are read; what it raises ends that, and
    so does `canceled`, which is asked while nothing happens.

    Raises FileUnreadable, in one of its kinds: UnsupportedFile, FileEncrypted, FileWithoutText, FileTooLarge,
    FileTooCostly, FileUnsafe, FileDamaged; NotFound where there is no such file.
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
    form = format_of(name, content)
    if form in ("txt", "md"):
        read = _plain(content, name, form)
    else:
        from homing.files.isolated import read_isolated

        read = read_isolated(content, name, form, limits, progress, canceled)
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
