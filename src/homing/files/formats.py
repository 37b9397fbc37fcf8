"""Which kind of file it is: by its name, and by how it begins where the name does not say."""

from __future__ import annotations

from pathlib import PurePosixPath

from homing.errors import UnsupportedFile
from homing.files.file_text import Format

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
