"""Where in a text the words of a query stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from homing.text.folding import Folded
from homing.text.tokens import query_terms
from homing.text.words import cut_with_offsets, is_run, word_tokens


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: `text[start:end]`."""

    start: int
    end: int


def spans(query: str, text: str) -> list[Span]:
    """The places in `text` that the query asks for, in order and apart from each other.

    Offsets count characters of `text` as it is, full-width, traditional and accented forms included. Chinese pairs that
    overlap become one place.
    """
    asked = frozenset(query_terms(query))
    folded = Folded(text)
    found: list[Span] = []
    for start, piece in cut_with_offsets(folded.text):
        for first, last in _places(piece, asked):
            begin, end = folded.place(start + first, start + last)
            if found and begin < found[-1].end:
                found[-1] = Span(found[-1].start, max(end, found[-1].end))
            else:
                found.append(Span(begin, end))
    return found


def _places(piece: str, asked: frozenset[str]) -> Iterator[tuple[int, int]]:
    if not is_run(piece):
        if not asked.isdisjoint(word_tokens(piece)):
            yield 0, len(piece)
        return
    for at, character in enumerate(piece):
        if piece[at : at + 2] in asked:
            yield at, min(at + 2, len(piece))
        elif character in asked:
            yield at, at + 1
