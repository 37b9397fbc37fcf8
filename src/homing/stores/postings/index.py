"""The words of collections as readers hold them: exact BM25 over segments, and when writers join some of those.

A store keeps three kinds of rows: headers of segments, pieces of their postings, and the keys of removed texts. Rows
never change; a reader that knows their ids knows their contents, so what is held in memory is never stale.

Every posting of a query's terms is read, segment by segment, and summed term by term in the order of the query: what a
text scores does not depend on the segment that it lies in. A term brings at most its idf.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from homing.stores.postings.segment import (
    MAX_TEXTS,
    PIECE,
    Header,
    Keys,
    Postings,
    Terms,
    numbers_of,
    unpack,
    unpack_keys,
    unpack_piece,
)

FAN_OUT = 4
"""Segments of about one size that lie side by side before they are joined."""
MEMORY = 96 * 1024 * 1024
"""Bytes of postings that are held."""
VIEWS = 256
"""Collections whose headers are held."""
K1 = 1.2
B = 0.75
MIN_IDF = 1e-6
"""The idf of a term that half of the texts hold, or more."""

Scores = npt.NDArray[np.float64]
ReadPieces = Callable[[int, Sequence[int]], Mapping[int, Postings]]
"""Reads pieces of a segment: its id, and the numbers of the pieces."""


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

    def __init__(self, view: View, terms: Sequence[str], read: ReadPieces) -> None:
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
        for one in sorted(self._held, key=lambda one: -one.part.texts) if limit else ():
            least = _least(scores, limit)
            slots = self._candidates(one, limit, least, allowed)
            found = self._exact(one, slots)
            kept = (found > 0) & (found >= least)
            keys = np.append(keys, one.part.header.keys[slots[kept]])
            scores = np.append(scores, found[kept])
        kept = scores >= _least(scores, limit)
        order = np.argsort(-scores[kept], kind="stable")
        return keys[kept][order], scores[kept][order]

    def _candidates(self, held: _Held, limit: int, least: float, allowed: Keys | None) -> npt.NDArray[np.int64]:
        """The slots of a segment whose score may be among the best `limit` of this segment, and at least `least`.

        Terms are summed from the rarest on, as long as what is left could lift a text that has none of them to the
        least score that counts. What the others bring is then looked up for few.
        """
        header, lists = held.part.header, held.lists
        weights = self._weights[held.at]
        order = np.argsort(-weights).tolist()
        most = [int(one.counts.max()) for one in lists]
        bounds = weights * most / (most + self._norms(header.lengths.min(keepdims=True)))
        # What the terms from this place on can bring at most, a little more for rounding.
        rest = np.append(np.cumsum(bounds[order][::-1])[::-1], 0.0) * (1 + 1e-9)
        sums, done = np.zeros(header.texts), 0
        barred = held.part.gone
        if allowed is not None:
            outside = ~among(header.keys, allowed)
            barred = outside if barred is None else barred | outside
        while rest[done] >= least and done < len(order):
            # At first enough terms for `limit` texts: the more they score, the sooner the others need no summing.
            wanted = 4 * limit if not done else 0
            first = done
            while done < len(order) and (wanted > 0 or (first and rest[done] >= least)):
                wanted -= len(lists[order[done]].slots)
                done += 1
            sums += self._summed(held, order[first:done])
            if barred is not None:
                sums[barred] = 0.0
            least = max(least, _least_of_chunks(sums, limit))
        slots = np.flatnonzero(sums > max(0.0, least - rest[done] - 1e-9 * least))
        for place in range(done, len(order)):
            if len(slots) <= 4 * limit:
                break
            gained = sums[slots] + self._brought(held, order[place], slots)
            sums[slots] = gained
            slots = slots[gained >= least - rest[place + 1] - 1e-9 * least]
        return slots

    def _exact(self, held: _Held, slots: npt.NDArray[np.int64]) -> Scores:
        """What texts of a segment score, summed in the order of the query."""
        found = np.zeros(len(slots))
        if len(slots):
            for place in range(len(held.lists)):
                found += self._brought(held, place, slots)
        return found

    def _brought(self, held: _Held, place: int, slots: npt.NDArray[np.int64]) -> Scores:
        """What one of the terms brings to texts of a segment."""
        postings = held.lists[place]
        at = np.minimum(np.searchsorted(postings.slots, slots.astype(np.uint16)), len(postings.slots) - 1)
        counts = np.where(postings.slots[at] == slots, postings.counts[at], 0)
        worth: Scores = self._weights[held.at[place]] * counts / (counts + self._norms(held.part.header.lengths[slots]))
        return worth

    def measure(self, keys: Keys) -> Scores:
        """What each of these texts scores; 0 where it shares no term, or does not exist."""
        found = np.zeros(len(keys))
        for one in self._held:
            held = one.part.header.keys
            slots = np.minimum(np.searchsorted(held, keys), len(held) - 1)
            mine = np.flatnonzero(held[slots] == keys)
            found[mine] = self._exact(one, slots[mine])
        return found

    def holding(self, groups: Sequence[Sequence[int]]) -> tuple[Keys, Scores]:
        """The texts that hold all terms of a group, of which there is one for each keyword, given by their places.

        Those with most keywords first, then those with the rarer, then by key; with what the keywords are worth.
        """
        keys, held = [np.zeros(0, np.int64)], [np.zeros((len(groups), 0), np.bool_)]
        for one in self._held:
            lists = dict(zip(one.at, one.lists, strict=True))
            found = np.zeros((len(groups), one.part.header.texts), np.bool_)
            for row, group in zip(found, groups, strict=True):
                if all(at in lists for at in group):
                    counts = np.bincount(np.concatenate([lists[at].slots for at in group]), minlength=len(row))
                    row[:] = counts == len(group)
            if one.part.gone is not None:
                found[:, one.part.gone] = False
            slots = np.flatnonzero(found.any(axis=0))
            keys.append(one.part.header.keys[slots])
            held.append(found[:, slots])
        every, matrix = np.concatenate(keys), np.concatenate(held, axis=1)
        weights = np.array([self._view.idf(int(number)) for number in matrix.sum(axis=1)])
        worth, counted = (matrix * weights[:, None]).sum(axis=0), matrix.sum(axis=0)
        order = np.lexsort((every, -worth, -counted))
        return every[order], worth[order]

    def _summed(self, held: _Held, places: Sequence[int]) -> Scores:
        """What some of the terms bring to every text of a segment."""
        lists = [held.lists[place] for place in places]
        slots = np.concatenate([one.slots for one in lists])
        counts = np.concatenate([one.counts for one in lists]).astype(np.float64)
        weights = [self._weights[held.at[place]] for place in places]
        worth = np.repeat(weights, [len(one.slots) for one in lists])
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


def _held(part: Part, numbers: Terms, read: ReadPieces) -> _Held:
    header = part.header
    if not len(header.terms):
        return _Held(part, [], [])
    places = np.minimum(np.searchsorted(header.terms, numbers), len(header.terms) - 1)
    at = np.flatnonzero(header.terms[places] == numbers)
    starts, ends = header.starts[places[at]].tolist(), header.starts[places[at] + 1].tolist()
    ranges = list(zip(starts, ends, strict=True))
    needed = {number for start, end in ranges for number in range(start // PIECE, (end - 1) // PIECE + 1)}
    pieces = read(part.id, sorted(needed)) if needed else {}
    return _Held(part, at.tolist(), [_postings(pieces, start, end) for start, end in ranges])


def _postings(pieces: Mapping[int, Postings], start: int, end: int) -> Postings:
    """The postings of a segment from one place to another."""
    first, last = start // PIECE, (end - 1) // PIECE
    part = slice(start - first * PIECE, end - first * PIECE)
    if first == last:
        return Postings(pieces[first].slots[part], pieces[first].counts[part])
    found = [pieces[number] for number in range(first, last + 1)]
    return Postings(
        np.concatenate([one.slots for one in found])[part], np.concatenate([one.counts for one in found])[part]
    )


def _least(scores: Scores, limit: int) -> float:
    """The score that the best `limit` have at least; 0 where there are not more."""
    return float(np.partition(scores, -limit)[-limit]) if len(scores) > limit else 0.0


def _least_of_chunks(scores: Scores, limit: int) -> float:
    """A score that at least `limit` have: the best of so many chunks. Quicker found than the last of the best."""
    chunks = max(4 * limit, 64)
    if len(scores) < 8 * chunks:
        return _least(scores, limit)
    size = len(scores) // chunks
    return _least(scores[: size * chunks].reshape(chunks, size).max(axis=1), limit)


class Rows(Protocol):
    """The rows of the index, as of one moment."""

    def headers(self, segments: Sequence[int]) -> Mapping[int, bytes]:
        """The headers of segments, by id."""
        ...

    def pieces(self, segment: int, numbers: Sequence[int]) -> Mapping[int, bytes]:
        """Pieces of the postings of a segment, by number."""
        ...

    def removed(self, removals: Sequence[int]) -> Mapping[int, bytes]:
        """The keys of texts that were removed, by row."""
        ...


class Index:
    """What is held in memory of the words of a store. Safe from several threads."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._views: OrderedDict[int, tuple[tuple[int, ...], tuple[int, ...], View]] = OrderedDict()
        self._pieces: OrderedDict[tuple[int, int], Postings] = OrderedDict()
        self._held = 0

    def view(self, collection: int, segments: Sequence[int], removals: Sequence[int], rows: Rows) -> View:
        """The words of a collection that has these segments and removals."""
        with self._lock:
            known = self._views.get(collection)
        if known is not None and known[:2] == (tuple(segments), tuple(removals)):
            return known[2]
        parts = {} if known is None else {one.id: one for one in known[2].parts}
        removed = unpack_keys(rows.removed(removals).values())
        stored = rows.headers([one for one in segments if one not in parts])
        headers = {one: parts[one].header if one in parts else unpack(stored[one]) for one in segments}
        found = View([Part.of(one, header, removed) for one, header in headers.items()])
        with self._lock:
            self._views[collection] = (tuple(segments), tuple(removals), found)
            self._views.move_to_end(collection)
            while len(self._views) > VIEWS:
                self._views.popitem(last=False)
        return found

    def pieces(self, rows: Rows, segment: int, numbers: Sequence[int]) -> dict[int, Postings]:
        """Pieces of a segment, out of memory where they are held."""
        found: dict[int, Postings] = {}
        with self._lock:
            for number in numbers:
                held = self._pieces.get((segment, number))
                if held is not None:
                    self._pieces.move_to_end((segment, number))
                    found[number] = held
        missing = [number for number in numbers if number not in found]
        if not missing:
            return found
        read = {number: unpack_piece(stored) for number, stored in rows.pieces(segment, missing).items()}
        with self._lock:
            for number, postings in read.items():
                if (segment, number) not in self._pieces:
                    self._pieces[segment, number] = postings
                    self._held += _bytes(postings)
            while self._held > self._memory:
                self._held -= _bytes(self._pieces.popitem(last=False)[1])
        return found | read


def _bytes(postings: Postings) -> int:
    return postings.slots.nbytes + postings.counts.nbytes


def due(segments: Sequence[tuple[int, int]]) -> list[int]:
    """Which segments, given as id and texts, are to be joined; none where that can wait.

    As soon as `FAN_OUT` of about one size are there, so that a text is written a few times in all.
    """
    levels: dict[int, list[tuple[int, int]]] = {}
    for one in segments:
        levels.setdefault(one[1].bit_length() // 2, []).append(one)
    for _, level in sorted(levels.items()):
        chosen, texts = list[int](), 0
        for segment, size in level:
            if texts + size <= MAX_TEXTS:
                chosen.append(segment)
                texts += size
        if len(chosen) >= FAN_OUT:
            return chosen
    return []
