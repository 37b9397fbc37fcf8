"""PDF files that have text in them, through pypdf."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from homing.errors import FileDamaged, FileEncrypted, FileWithoutText
from homing.files.archive import damaged
from homing.files.file_text import FileText, joined
from homing.files.libraries import library
from homing.files.limits import Counter, Limits
from homing.files.unwrapping import unwrapped
from homing.progress import Progress


def read_pdf(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """The text page by page. Lines that the layout broke are joined again.

    A file whose owner only forbids printing or copying is read; one that asks for a password is not.
    """
    pypdf = library("pypdf")
    if b"%PDF-" not in content[:1024]:
        raise FileDamaged(f"{filename} does not begin like a PDF; was it copied completely?")
    with damaged(filename):
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise FileEncrypted(f"{filename} asks for a password; save it without one", details={"filename": filename})
        Counter(filename, "pages", limits.pages).add(len(reader.pages))
        pages = list(_pages(reader, Counter(filename, "characters", limits.characters), progress))
    blank = [number for number, text in pages if not text]
    if len(blank) == len(pages):
        raise FileWithoutText(
            f"{filename} has no text on its {len(pages)} pages: they are pictures; run OCR on it first",
            details={"filename": filename, "pages": len(pages)},
        )
    text, parts = joined((str(number), text) for number, text in pages)
    return FileText(text, "pdf", filename, parts, _notes(blank))


def _pages(reader: Any, counter: Counter, progress: Progress) -> Iterator[tuple[int, str]]:
    count = len(reader.pages)
    for number, page in enumerate(reader.pages, start=1):
        text = unwrapped(page.extract_text() or "")
        counter.add(len(text))
        progress(number, count)
        yield number, text


def _notes(blank: list[int]) -> tuple[str, ...]:
    if not blank:
        return ()
    listed = ", ".join(map(str, blank[:20])) + (" …" if len(blank) > 20 else "")
    return (f"{len(blank)} pages have no text (pictures?): {listed}",)
