"""A text in overlapping windows of so many characters, cut between sentences in Chinese and English."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from homing.errors import InvalidArgument
from homing.text.sentences import between_characters, sentence_ends

SIZE = 1000
OVERLAP = 150

_PARAGRAPH_END = re.compile(r"\n\s*\n")
_LINE_END = re.compile(r"[\r\n]+")
_CLAUSE_END = re.compile(r"[，,、；;：:]+|\s+")
_MEANS_SOMETHING = re.compile(r"[^\W_]|[\u2190-\u2bff\U0001f000-\U0001faff]")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text: `text == original[start:end]`, with no white space at its borders."""

    start: int
    end: int
    text: str


def windows(text: str, *, size: int = SIZE, overlap: int = OVERLAP) -> list[Window]:
    """The windows of a text in order: at most `size` characters each, about `overlap` of them shared with the next.

    A window ends where a paragraph does, else a sentence, else a clause, and begins at the start of a sentence; only
    what has none of these for half a window is cut anywhere, and never inside an emoji or between a letter and its
    accent. Every word of the text is in a window. Takes time in proportion to the text.
    """
    if not 0 <= overlap * 2 < size:
        raise InvalidArgument(f"windows of {size} characters cannot share {overlap}; less than half is possible")
    breaks = _Breaks(text)
    found = []
    begin = 0
    while begin < len(text):
        end = breaks.end(begin, size)
        piece = text[begin:end]
        if _MEANS_SOMETHING.search(piece):
            start = begin + len(piece) - len(piece.lstrip())
            stop = end - len(piece) + len(piece.rstrip())
            found.append(Window(start, stop, text[start:stop]))
        if end == len(text):
            break
        begin = breaks.start(end - overlap, end) if overlap else end
    return found


class _Breaks:
    """Where a text may be cut, the better places first."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._paragraphs = [one.end() for one in _PARAGRAPH_END.finditer(text)]
        lines = {one.end() for one in _LINE_END.finditer(text)}
        self._sentences = sorted(lines.union(sentence_ends(text, 0, len(text))))

    def end(self, begin: int, size: int) -> int:
        """Where a window that begins here ends."""
        if begin + size >= len(self._text):
            return len(self._text)
        earliest, latest = begin + size // 2, begin + size
        for places in (self._paragraphs, self._sentences, self._clauses(earliest, latest)):
            at = bisect_right(places, latest) - 1
            if at >= 0 and places[at] > earliest:
                return places[at]
        return between_characters(self._text, begin, latest)

    def start(self, earliest: int, end: int) -> int:
        """Where the next window begins, so that it repeats what stands between `earliest` and `end`."""
        for places in (self._sentences, self._clauses(earliest, end)):
            at = bisect_left(places, earliest)
            # The whole of a sentence that is longer than the overlap would be too much; its last clauses will do.
            if at < len(places) and places[at] < end:
                return places[at]
        return between_characters(self._text, 0, earliest)

    def _clauses(self, start: int, end: int) -> Sequence[int]:
        return [one.end() for one in _CLAUSE_END.finditer(self._text, start, end)]
