"""What a file says."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Format = Literal["txt", "md", "pdf", "docx", "xlsx", "epub"]

BETWEEN = "\n\n"
"""What stands between two parts of a text."""


@dataclass(frozen=True, slots=True)
class Part:
    """A page, a sheet or a chapter: its name as a person would cite it, and its place in the text."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file. Headings are written as in Markdown, paragraphs are parted by blank lines.

    `parts` are in order and cover all of the text but what stands between them; a plain text has none. `notes` say what
    a person should know about the reading: pages without text, characters that could not be read.
    """

    text: str
    format: Format
    filename: str
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()

    def part_at(self, offset: int) -> str:
        """The name of the page, sheet or chapter that a character stands in; empty where there are none."""
        at = bisect_right(self.parts, offset, key=lambda part: part.start) - 1
        return self.parts[at].name if at >= 0 else ""


def joined(named: Iterable[tuple[str, str]]) -> tuple[str, tuple[Part, ...]]:
    """One text of many parts, and where each of them is; empty parts are left out."""
    texts: list[str] = []
    parts: list[Part] = []
    at = 0
    for name, text in named:
        if not text:
            continue
        parts.append(Part(name, at, at + len(text)))
        texts.append(text)
        at += len(text) + len(BETWEEN)
    return BETWEEN.join(texts), tuple(parts)
