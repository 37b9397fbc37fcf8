"""Where sentences end, and how a text is cut there: into stretches of a size, or into overlapping windows."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from homing.errors import InvalidArgument
from homing.text.budget import estimate_tokens

# Runs of marks are matched once and whole (`(?<!…)…++`): a megabyte of exclamation marks must not cost its square.
_CLOSING = "[”’」』）》】\"')\\]]*+"
_END = re.compile(
    rf"[。！？；…]++{_CLOSING}"
    rf"|(?<![!?])[!?]++{_CLOSING}(?=[\s\u2e80-\uffef]|$)"
    rf"|\.{_CLOSING}(?=\s++[^a-z])"
    r"|(?<![\r\n])[\r\n]++(?=[ \t]*+(?:[-*+•]|\d{1,3}[.)、]))"
)
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|Fig|Eq|al|e\.g|i\.e|cf|Inc|Ltd|Co)|\b[A-Z])\Z")
_CLAUSE = re.compile(r"[，,、；;：:]++|\s++")
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_LINE_END = re.compile(r"[\r\n]+")
_WORD = re.compile(r"[^\W_]|[\u2190-\u2bff\U0001f000-\U0001faff]")
# All white space of Unicode, and the mark that some editors begin a text with.
_BORDER = (
    " \t\r\n\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)

SIZE = 1000
OVERLAP = 150
"""Characters of a window, and how many of them the next one repeats."""

MIN_SENTENCE = 8
"""Characters; a shorter sentence (好。) stays with the next one."""

Stretch = tuple[int, int]


class _Sentence(NamedTuple):
    start: int
    end: int
    size: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a text: `text == original[start:end]`, with no white space at its borders."""

    start: int
    end: int
    text: str


def trimmed(text: str, start: int, end: int) -> Iterator[Passage]:
    """A stretch of a text without white space at its borders; nothing where it has no letter, digit or emoji."""
    if _WORD.search(text, start, end):
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip(_BORDER))
        end -= len(piece) - len(piece.rstrip(_BORDER))
        yield Passage(start, end, text[start:end])


def sentence_ends(text: str) -> Iterator[int]:
    """Offsets just behind the sentences of a text, in order; the end of the text itself is not among them.

    Chinese and Western marks with the quotes that close after them, and the items of a list. A full stop counts where
    something other than a small letter follows; abbreviations and initials end nothing.
    """
    for found in _END.finditer(text):
        if found.end() < len(text) and (
            found[0][0] != "." or not _ABBREVIATION.search(text[max(0, found.start() - 6) : found.start()])
        ):
            yield found.end()


def cut_long(text: str, ends: Iterable[int], limit: int) -> Iterator[Stretch]:
    """Cuts a text, at some of the offsets `ends`, into stretches of at most `limit` tokens, as they are estimated.

    Among the places between half the limit and the limit, that one is taken whose sentence has the smallest checksum.
    It looks arbitrary and is meant to be: a choice by content falls on the same places again after an edit further up,
    where filling each stretch to the brim would move all that follow.
    """
    sentences = list(_small_enough(text, _between(0, len(text), ends), limit))
    at = 0
    while at < len(sentences):
        begin = sentences[at].start
        stop, filled = at, 0
        candidates: list[tuple[int, int]] = []
        while stop < len(sentences) and (stop == at or filled + sentences[stop].size <= limit):
            filled += sentences[stop].size
            if filled * 2 >= limit:
                candidates.append((_checksum(text, sentences[stop]), stop))
            stop += 1
        chosen = stop - 1 if stop == len(sentences) or not candidates else min(candidates)[1]
        while chosen > at and estimate_tokens(text[begin : sentences[chosen].end]) > limit:
            chosen -= 1
        yield begin, sentences[chosen].end
        at = chosen + 1


def _between(start: int, end: int, ends: Iterable[int]) -> Iterator[Stretch]:
    for place in ends:
        if start + MIN_SENTENCE <= place < end:
            yield start, place
            start = place
    yield start, end


def _small_enough(text: str, sentences: Iterable[Stretch], limit: int) -> Iterator[_Sentence]:
    """The sentences, those above the limit in their clauses, and clauses above the limit in plain pieces."""
    for start, end in sentences:
        cost = estimate_tokens(text[start:end])
        if cost <= limit:
            yield _Sentence(start, end, cost)
            continue
        for first, last in _between(start, end, (found.end() for found in _CLAUSE.finditer(text, start, end))):
            if estimate_tokens(text[first:last]) > limit:
                while last - first > limit:
                    place = between_characters(text, first, first + limit)
                    yield _Sentence(first, place, estimate_tokens(text[first:place]))
                    first = place
            yield _Sentence(first, last, estimate_tokens(text[first:last]))


def between_characters(text: str, begin: int, place: int) -> int:
    """A place at or shortly before `place` that separates no accent, variation or joined emoji from its character."""
    for nearer in range(place, max(begin + 1, place - 16), -1):
        joined = (
            unicodedata.category(text[nearer]) in ("Mn", "Me", "Cf") or "\U0001f3fb" <= text[nearer] <= "\U0001f3ff"
        )
        if not joined and text[nearer - 1] != "\u200d":
            return nearer
    return place


def _checksum(text: str, sentence: _Sentence) -> int:
    return crc32(text[sentence.start : sentence.end].strip().encode("utf-8", "surrogatepass"))


def windows(text: str, *, size: int = SIZE, overlap: int = OVERLAP) -> list[Passage]:
    """The windows of a text in order: at most `size` characters each, about `overlap` of them shared with the next.

    A window ends where a paragraph does, else a sentence, else a clause, and begins at the start of a sentence; only
    what has none of these for half a window is cut anywhere, and never inside an emoji or between a letter and its
    accent. Every word of the text is in a window. Takes time in proportion to the text.
    """
    if not 0 <= overlap * 2 < size:
        raise InvalidArgument(f"windows of {size} characters cannot share {overlap}; less than half is possible")
    breaks = _Breaks(text)
    found: list[Passage] = []
    begin = 0
    while begin < len(text):
        end = breaks.end(begin, size)
        found += trimmed(text, begin, end)
        if end == len(text):
            break
        begin = breaks.start(begin, end - overlap, end) if overlap else end
    return found


class _Breaks:
    """Where a text may be cut, the better places first."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._paragraphs = [one.end() for one in _PARAGRAPH_END.finditer(text)]
        lines = {one.end() for one in _LINE_END.finditer(text)}
        self._sentences = sorted(lines.union(sentence_ends(text)))

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

    def start(self, begin: int, earliest: int, end: int) -> int:
        """Where the window after the one from `begin` begins, to repeat what stands from `earliest` to `end`."""
        for places in (self._sentences, self._clauses(earliest, end)):
            at = bisect_left(places, earliest)
            # The whole of a sentence that is longer than the overlap would be too much; its last clauses will do.
            if at < len(places) and places[at] < end:
                return places[at]
        return between_characters(self._text, begin, earliest)

    def _clauses(self, start: int, end: int) -> Sequence[int]:
        return [one.end() for one in _CLAUSE.finditer(self._text, start, end)]
