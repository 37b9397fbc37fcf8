"""A text as pieces, each named by what it says: what is embedded, and by what it is known again after an edit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from homing.stores.arguments import is_encodable
from homing.text.paragraphs import MAX_TOKENS, MIN_CHARS, Paragraph, paragraphs
from homing.text.sentences import windows

PARAGRAPHS, WINDOWS = "paragraphs", "windows"
"""How a document is cut: what people write by paragraph, what was uploaded in windows that overlap."""

_SPOKEN = re.compile(r"[“「『\"—]")
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text and the digest of what it says; line ends are written alike before they are digested."""

    start: int
    end: int
    digest: bytes


def split(text: str, start: int = 0, end: int | None = None) -> list[Piece]:
    """The pieces of `text[start:end]`, in order and apart from each other; offsets are those of `text`."""
    part = text if start == 0 and end is None else text[start:end]
    return [
        Piece(start + first, start + last, _digest(part[first:last]))
        for first, last in _with_context(part, paragraphs(part))
    ]


def split_windows(text: str) -> list[Piece]:
    """The windows of a text, in order; neighbours overlap."""
    return [Piece(one.start, one.end, _digest(one.text)) for one in windows(text)]


def embedded_text(text: str) -> str:
    """What is embedded and indexed for a piece: its text with plain line ends, and no halves of characters."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    return plain if is_encodable(plain) else _HALF.sub("\ufffd", plain)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(embedded_text(text).encode(), digest_size=16).digest()


def _with_context(text: str, found: Sequence[Paragraph]) -> Iterator[tuple[int, int]]:
    """Short lines of dialogue go with what follows them: alone they say nothing that could be searched by meaning.

    Long dialogues are parted at lines chosen by what they say, so that a line put in regroups its neighbours only.
    """
    begun: tuple[int, int] | None = None
    for one in found:
        if begun is not None and one.end - begun[0] > MAX_TOKENS:
            yield begun
            begun = None
        start = one.start if begun is None else begun[0]
        spoken = one.end - one.start < MIN_CHARS and _SPOKEN.match(text, one.start) is not None
        if spoken and (begun is None or crc32(one.text.encode("utf-8", "surrogatepass")) % 4):
            begun = (start, one.end)
        else:
            yield start, one.end
            begun = None
    if begun is not None:
        yield begun
