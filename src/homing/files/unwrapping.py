"""Joins the lines of a page that were broken by its width, not by its writer."""

from __future__ import annotations

import re

_HYPHENATED = re.compile(r"[A-Za-z]{2,}-\Z")
_BEGINS_ANEW = re.compile(
    r"\s{2,}|\u3000|[-*•·●▪◦–—]\s|\(?\d{1,3}[.)、]|[（(]?[一二三四五六七八九十]{1,3}[）)、.]|第.{1,6}[章节條条]|#"
)
_WIDE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f]")
_NARROWEST = 30
"""Columns; where no line of a page is wider, its lines are entries and not prose. A wide character takes two."""
_FULL = 0.75
"""A line at least this long, compared with the long lines of its page, was broken by the width."""


def unwrapped(page: str) -> str:
    """The paragraphs of a page, one line each; a hyphen at the end of a line joins the halves of its word."""
    # Fonts with broken tables give halves of surrogate pairs, which no file or answer can hold.
    whole = page.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    lines = [line.rstrip() for line in whole.replace("\r\n", "\n").replace("\0", "").split("\n")]
    widths = sorted(_width(line) for line in lines if line.strip())
    if not widths:
        return ""
    full = max(_NARROWEST, widths[int(len(widths) * 0.9)] * _FULL)
    told: list[str] = []
    before = ""
    for line in lines:
        if told and before and line.strip() and _goes_on(before, line, full):
            told[-1] = _join(told[-1], line.strip())
        elif line.strip() or (told and told[-1]):
            told.append(line.strip())
        before = line
    return "\n".join(told).strip()


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
