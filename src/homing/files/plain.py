"""Plain text and Markdown, in whatever encoding an editor writes."""

from __future__ import annotations

from homing.errors import FileDamaged
from homing.files.file_text import FileText, Format
from homing.files.limits import Limits
from homing.progress import Progress
from homing.text.decoding import NotText, decode_any


def read_plain(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """A text as it stands."""
    return _read(content, filename, "txt")


def read_markdown(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """Markdown as it stands: its marks are part of what is shown again."""
    return _read(content, filename, "md")


def _read(content: bytes, filename: str, form: Format) -> FileText:
    try:
        decoded = decode_any(content)
    except NotText as error:
        raise FileDamaged(f"{filename} is not text: {error}", details={"filename": filename}) from error
    notes = (f"{decoded.replaced} characters could not be read",) if decoded.replaced else ()
    return FileText(decoded.text, form, filename, notes=notes)
