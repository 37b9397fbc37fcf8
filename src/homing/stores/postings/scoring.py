"""Exact BM25 over the segments of a collection.

Every posting of a query's terms is read, segment by segment, and summed term by term in the order of the query: what a
text scores does not depend on the segment that it lies in. A term brings at most its idf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from homing.stores.postings.segment import PIECE, Header, Keys, Postings, Terms, numbers_of

K1 = 1.2
B = 0.75
MIN_IDF = 1e-6
"""The idf of a term that half of the texts hold, or more."""

Scores = npt.NDArray[np.float64]
ReadPiece = Callable[[int, int], Postings]
"""Reads a piece of a segment: its id, and the number of the piece."""


@dataclass(frozen=True, slots=True)
class Part:
    """A segment as a search sees it; `gone` says of each slot whether its text was taken out, None where none was.

    `texts` and `words` count what is left.
    """

    id: int
    header: Header
    gone: npt.NDArray[np.bool_] | None
    texts: int
    words: int

    @classmethod
    def of(cls, segment: int, header: Header, removed: Keys) -> Part:
        """A segment without removed texts, whose keys are in order."""
        gone = among(header.keys, removed)
        if not gone.any():
            return cls(segment, header, None, header.texts, int(header.lengths.sum(dtype=np.int64)))
        return cls(
            segment,
            header,
            gone,
            header.texts - int(gone.sum()),
            int(header.lengths[~gone].sum(dtype=np.int64)),
        )


@dataclass(frozen=True, slots=True)
class _Held:
    """The postings of a query's terms in one segment; `at` says which of the terms each list belongs to."""

    part: Part
    at: list[int]
    lists: list[Postings]


@dataclass(frozen=True)
class View:
    """The words of a collection at one moment."""

    parts: Sequence[Part]

    @cached_property
    def texts(self) -> int:
        """How many texts there are."""
        return sum(one.texts for one in self.parts)

    @cached_property
    def mean(self) -> float:
        """How many words a text has in the mean."""
        return max(1.0, sum(one.words for one in self.parts) / max(1, self.texts))

    def idf(self, holders: int) -> float:
        """What a term is worth that so many texts hold."""
        return max(MIN_IDF, math.log(max(self.texts - holders + 0.5, 0.5) / (holders + 0.5)))


class Question:
    """Terms that are asked of a view: what they are worth, and what texts score by them."""

    def __init__(self, view: View, terms: Sequence[str], read: ReadPiece) -> None:
        self._view = view
        numbers = numbers_of(terms)
        self._held = [one for part in view.parts if (one := _held(part, numbers, read)).at]
        holders = [0] * len(terms)
        for one in self._held:
            for at, postings in zip(one.at, one.lists, strict=True):
                gone = 0 if one.part.gone is None else int(one.part.gone[postings.slots].sum())
                holders[at] += len(postings.slots) - gone
        self._weights = np.array([view.idf(number) for number in holders])

    @property
    def mass(self) -> float:
        """What all terms are worth."""
        return float(self._weights.sum())

    def best(self, limit: int, allowed: Keys | None = None) -> tuple[Keys, Scores]:
        """The best texts, by score: `limit` of them, and whatever ties with the last.

        `allowed` are the keys that may be found, in order; None is all of them.
        """
        keys, scores = np.zeros(0, np.int64), np.zeros(0)
        for one in self._held:
            found = self._scored(one)
            if one.part.gone is not None:
                found[one.part.gone] = 0.0
            if allowed is not None:
                found *= among(one.part.header.keys, allowed)
            least = _least(scores, limit)
            slots = np.flatnonzero(found > 0 if least <= 0 else found >= least)
            if len(slots) > limit:
                slots = slots[found[slots] >= _least(found[slots], limit)]
            keys, scores = np.append(keys, one.part.header.keys[slots]), np.append(scores, found[slots])
        kept = scores >= _least(scores, limit)
        order = np.argsort(-scores[kept], kind="stable")
        return keys[kept][order], scores[kept][order]

    def measure(self, keys: Keys) -> Scores:
        """What each of these texts scores; 0 where it shares no term, or does not exist."""
        found = np.zeros(len(keys))
        for one in self._held:
            header = one.part.header
            slots = np.minimum(np.searchsorted(header.keys, keys), header.texts - 1)
            mine = np.flatnonzero(header.keys[slots] == keys)
            slots = slots[mine]
            norms = self._norms(header.lengths[slots])
            for at, postings in zip(one.at, one.lists, strict=True):
                place = np.minimum(np.searchsorted(postings.slots, slots), len(postings.slots) - 1)
                counts = np.where(postings.slots[place] == slots, postings.counts[place], 0)
                found[mine] += self._weights[at] * counts / (counts + norms)
        return found

    def _scored(self, held: _Held) -> Scores:
        """The score of every text of a segment."""
        slots = np.concatenate([one.slots for one in held.lists])
        counts = np.concatenate([one.counts for one in held.lists]).astype(np.float64)
        worth = np.repeat(self._weights[held.at], [len(one.slots) for one in held.lists])
        worth *= counts
        counts += self._norms(held.part.header.lengths[slots])
        worth /= counts
        return np.bincount(slots, worth, held.part.header.texts).astype(np.float64, copy=False)

    def _norms(self, lengths: npt.NDArray[np.uint32]) -> Scores:
        found = lengths * (K1 * B / self._view.mean)
        found += K1 * (1 - B)
        return found.astype(np.float64, copy=False)


def among(keys: Keys, others: Keys) -> npt.NDArray[np.bool_]:
    """Which of some keys are among others; both are in order."""
    found = np.zeros(len(keys), np.bool_)
    if len(others):
        mine = others[np.searchsorted(others, keys[0]) : np.searchsorted(others, keys[-1], "right")]
        at = np.searchsorted(keys, mine)
        found[at[keys[at] == mine]] = True
    return found


def _held(part: Part, numbers: Terms, read: ReadPiece) -> _Held:
    header = part.header
    places = np.minimum(np.searchsorted(header.terms, numbers), len(header.terms) - 1)
    at = np.flatnonzero(header.terms[places] == numbers).tolist() if len(header.terms) else []
    ranges = [(int(header.starts[places[one]]), int(header.starts[places[one] + 1])) for one in at]
    return _Held(part, at, [_postings(part.id, start, end, read) for start, end in ranges])


def _postings(segment: int, start: int, end: int, read: ReadPiece) -> Postings:
    """The postings of a segment from one place to another."""
    first, last = start // PIECE, (end - 1) // PIECE
    pieces = [read(segment, number) for number in range(first, last + 1)]
    part = slice(start - first * PIECE, end - first * PIECE)
    if first == last:
        return Postings(pieces[0].slots[part], pieces[0].counts[part])
    return Postings(
        np.concatenate([one.slots for one in pieces])[part], np.concatenate([one.counts for one in pieces])[part]
    )


def _least(scores: Scores, limit: int) -> float:
    """The score that the best `limit` have at least; 0 where there are not more."""
    return float(np.partition(scores, -limit)[-limit]) if len(scores) > limit else 0.0
