"""Where in a text the words of a query stand."""

from __future__ import annotations

from dataclasses import dataclass

from homing.text.folding import fold_with_offsets
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
    folded, origin = fold_with_offsets(text)
    places: list[tuple[int, int]] = []
    for start, piece in cut_with_offsets(folded):
        if not is_run(piece):
            if not asked.isdisjoint(word_tokens(piece)):
                places.append((start, start + len(piece)))
            continue
        for i, character in enumerate(piece, start):
            length = 2 if folded[i : i + 2] in asked and i + 2 <= start + len(piece) else int(character in asked)
            if not length:
                continue
            if places and places[-1][1] > i:
                places[-1] = (places[-1][0], max(places[-1][1], i + length))
            else:
                places.append((i, i + length))
    return [Span(origin[first], origin[last]) for first, last in places]
