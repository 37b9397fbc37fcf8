"""What a file says, and how much of it is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from homing.errors import FileTooLarge

Format = Literal["txt", "md", "pdf", "docx", "xlsx", "epub"]

BETWEEN = "\n\n"
"""What stands between two parts of a text."""

MIB = 1024 * 1024


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


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file may have at most.

    `bytes` as it is stored; `unpacked` bytes of everything in it where it is an archive, and `member` bytes of one
    member that is read as a whole; `members`, `pages` and `cells` by count; `characters` of text that come out. What is
    not plain text is read by a process that may take `seconds`, of them `cpu_seconds` at work, and `memory` bytes.
    """

    bytes: int = 64 * MIB
    unpacked: int = 256 * MIB
    member: int = 64 * MIB
    members: int = 10_000
    pages: int = 5_000
    cells: int = 5_000_000
    characters: int = 20_000_000
    seconds: float = 60.0
    cpu_seconds: float = 30.0
    memory: int = 1024 * MIB


class Counter:
    """Adds up what has been read of a file, and refuses the file when a limit is passed."""

    def __init__(self, filename: str, what: str, limit: int) -> None:
        self._filename, self._what, self._limit = filename, what, limit
        self._counted = 0

    def add(self, count: int) -> None:
        """Count some more. Raises FileTooLarge."""
        self._counted += count
        if self._counted > self._limit:
            raise FileTooLarge(
                f"{self._filename} has more than {self._limit:,} {self._what}; split it into smaller files",
                details={"limit": self._limit, "of": self._what},
            )
