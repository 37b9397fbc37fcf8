"""PDF files that have text in them, through pypdf."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from homing.errors import FileDamaged, FileEncrypted, FileWithoutText
from homing.files.archive import damaged
from homing.files.file_text import Counter, FileText, Limits, joined
from homing.progress import Progress
from homing.text.decoding import without_surrogates

_HYPHENATED = re.compile(r"[A-Za-z]{2,}-\Z")
_BEGINS_ANEW = re.compile(
    r"\s{2,}|\u3000|[-*•·●▪◦–—]\s|\(?\d{1,3}[.)、]|[（(]?[一二三四五六七八九十]{1,3}[）)、.]|第.{1,6}[章节條条]|#"
)
_WIDE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f]")
_MIN_COLUMNS = 30
"""Columns; where no line of a page is wider, its lines are entries and not prose. A wide character takes two."""
_FULL = 0.75
"""A line at least this long, compared with the long lines of its page, was broken by the width."""


def read_pdf(content: bytes, filename: str, limits: Limits, progress: Progress) -> FileText:
    """The text page by page. Lines that the layout broke are joined again.

    A file whose owner only forbids printing or copying is read; one that asks for a password is not.
    """
    import pypdf

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


def unwrapped(page: str) -> str:
    """The paragraphs of a page, one line each; a hyphen at the end of a line joins the halves of its word."""
    # Fonts with broken tables give halves of surrogate pairs, which no file or answer can hold.
    lines = [line.rstrip() for line in without_surrogates(page).replace("\r\n", "\n").replace("\0", "").split("\n")]
    widths = sorted(_width(line) for line in lines if line.strip())
    if not widths:
        return ""
    full = max(_MIN_COLUMNS, widths[int(len(widths) * 0.9)] * _FULL)
    joined_lines: list[str] = []
    before = ""
    for line in lines:
        if joined_lines and before and line.strip() and _goes_on(before, line, full):
            joined_lines[-1] = _join(joined_lines[-1], line.strip())
        elif line.strip() or (joined_lines and joined_lines[-1]):
            joined_lines.append(line.strip())
        before = line
    return "\n".join(joined_lines).strip()


def _goes_on(before: str, line: str, full: float) -> bool:
    return _width(before) >= full and not _BEGINS_ANEW.match(line)


def _join(before: str, line: str) -> str:
    if _HYPHENATED.search(before) and line[:1].islower():
        return before[:-1] + line
    if _WIDE.match(before[-1:]) or _WIDE.match(line[:1]):
        return before + line
    return f"{before} {line}"


def _width(line: str) -> int:
    return len(line) + len(_WIDE.findall(line))
