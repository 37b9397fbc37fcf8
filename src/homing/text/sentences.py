"""Where sentences end, and how a text that is too long is cut there."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

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

SHORTEST = 8
"""Characters; a shorter sentence (好。) stays with the next one."""

Stretch = tuple[int, int]


class _Sentence(NamedTuple):
    start: int
    end: int
    size: int


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Offsets just behind the sentences of `text[start:end]`, in order; the end of the text itself is not among them.

    Chinese and Western marks with the quotes that close after them, and the items of a list. A full stop counts where
    something other than a small letter follows; abbreviations and initials end nothing.
    """
    for found in _END.finditer(text, start, end):
        if found.end() < end and (
            found[0][0] != "." or not _ABBREVIATION.search(text[max(start, found.start() - 6) : found.start()])
        ):
            yield found.end()


def cut_long(
    text: str, start: int, end: int, ends: Iterable[int], size: Callable[[str], int], limit: int
) -> Iterator[Stretch]:
    """Cuts `text[start:end]`, at some of the offsets `ends`, into stretches whose `size` is at most `limit`.

    Among the places between half the limit and the limit, that one is taken whose sentence has the smallest checksum.
    It looks arbitrary and is meant to be: a choice by content falls on the same places again after an edit further up,
    where filling each stretch to the brim would move all that follow.
    """
    sentences = list(_small_enough(text, _between(start, end, ends), size, limit))
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
        while chosen > at and size(text[begin : sentences[chosen].end]) > limit:
            chosen -= 1
        yield begin, sentences[chosen].end
        at = chosen + 1


def _between(start: int, end: int, ends: Iterable[int]) -> Iterator[Stretch]:
    for place in ends:
        if start + SHORTEST <= place < end:
            yield start, place
            start = place
    yield start, end


def _small_enough(
    text: str, sentences: Iterable[Stretch], size: Callable[[str], int], limit: int
) -> Iterator[_Sentence]:
    """The sentences, those above the limit in their clauses, and clauses above the limit in plain pieces."""
    for start, end in sentences:
        cost = size(text[start:end])
        if cost <= limit:
            yield _Sentence(start, end, cost)
            continue
        for first, last in _between(start, end, (found.end() for found in _CLAUSE.finditer(text, start, end))):
            if size(text[first:last]) > limit:
                while last - first > limit:
                    place = between_characters(text, first, first + limit)
                    yield _Sentence(first, place, size(text[first:place]))
                    first = place
            yield _Sentence(first, last, size(text[first:last]))


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
