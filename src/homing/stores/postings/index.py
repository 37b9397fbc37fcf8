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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from homing.stores.postings.segment import (
    MAX_TEXTS,
    PIECE,
    Counts,
    Header,
    Keys,
    Postings,
    Slots,
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
IDS = 50_000
"""Ids of records that are held."""
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


class _Held(NamedTuple):
    """The postings of a query's terms in one segment, term after term; `at` says which terms, `sizes` how many each."""

    part: Part
    at: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    slots: Slots
    counts: Counts


@dataclass(frozen=True)
class View:
    """The words of a collection at one moment."""

    parts: Sequence[Part]
    _norms: dict[int, Scores] = field(default_factory=dict)

    @cached_property
    def spellings(self) -> dict[str, str]:
        """What unknown words were read as, as far as it was looked up: each leg of a search asks for the same."""
        return {}

    @cached_property
    def texts(self) -> int:
        """How many texts there are."""
        return sum(one.texts for one in self.parts)

    @cached_property
    def mean(self) -> float:
        """How many words a text has in the mean."""
        return max(1.0, sum(one.words for one in self.parts) / max(1, self.texts))

    def may_hold(self, terms: Terms) -> npt.NDArray[np.bool_]:
        """Which terms some segment has, be it of removed texts."""
        found = np.zeros(len(terms), np.bool_)
        for part in self.parts:
            held = part.header.terms
            if len(held):
                found |= held[np.minimum(held.searchsorted(terms), len(held) - 1)] == terms
        return found

    def norms(self, part: Part) -> Scores:
        """How much the length of each text of a segment counts against it."""
        found = self._norms.get(part.id)
        if found is None:
            lengths = part.header.lengths.astype(np.float64)
            self._norms[part.id] = found = lengths * (K1 * B / self.mean) + K1 * (1 - B)
        return found

    def idf(self, holders: int) -> float:
        """What a term is worth that so many texts hold."""
        return max(MIN_IDF, math.log(max(self.texts - holders + 0.5, 0.5) / (holders + 0.5)))


class Question:
    """Terms that are asked of a view: what they are worth, and what texts score by them."""

    def __init__(self, view: View, terms: Sequence[str], read: ReadPieces) -> None:
        self._view = view
        numbers = numbers_of(terms)
        self._held = [one for part in view.parts if (one := _held(part, numbers, read)) is not None]
        holders = np.zeros(len(terms), np.int64)
        for one in self._held:
            holders[one.at] += one.sizes
            if one.part.gone is not None:
                gone = np.repeat(one.at, one.sizes)[one.part.gone[one.slots]]
                holders -= np.bincount(gone, minlength=len(terms))
        self.holders: list[int] = holders.tolist()
        """How many texts have each of the terms."""
        self._weights = np.array([view.idf(number) for number in self.holders])

    @property
    def mass(self) -> float:
        """What all terms are worth."""
        return float(self._weights.sum())

    def best(self, limit: int, allowed: Keys | None = None) -> tuple[Keys, Scores]:
        """The best texts, by score: `limit` of them, and whatever ties with the last.

        `allowed` are the keys that may be found, in order; None is all of them.
        """
        least, keys, scores = 0.0, [np.zeros(0, np.int64)], [np.zeros(0)]
        for one in sorted(self._held, key=lambda one: -one.part.texts) if limit else ():
            # A term brings less than its idf.
            if float(self._weights[one.at].sum()) > least:
                sums = self._summed(one)
                if one.part.gone is not None:
                    sums[one.part.gone] = 0.0
                if allowed is not None:
                    sums *= among(one.part.header.keys, allowed)
                least = max(least, _reached(sums, limit))
                slots = np.flatnonzero(sums >= least if least > 0 else sums)
                keys.append(one.part.header.keys[slots])
                scores.append(sums[slots])
        every, found = np.concatenate(keys), np.concatenate(scores)
        kept = np.flatnonzero(found >= _least(found, limit))
        kept = kept[np.argsort(-found[kept], kind="stable")]
        return every[kept], found[kept]

    def measure(self, keys: Keys) -> Scores:
        """What each of these texts scores; 0 where it shares no term, or does not exist."""
        found = np.zeros(len(keys))
        for one in self._held:
            held = one.part.header.keys
            slots = np.minimum(np.searchsorted(held, keys), len(held) - 1)
            mine = np.flatnonzero(held[slots] == keys)
            if len(mine):
                found[mine] = self._few(one, slots[mine])
        return found

    def holding(self, groups: Sequence[Sequence[int]]) -> tuple[Keys, npt.NDArray[np.bool_], Scores]:
        """The texts that hold all terms of a group, of which there is one for each keyword, given by their places.

        Those with most keywords first, then those with the rarer, then by key; the keywords of each, a row for each
        keyword; and what the keywords are worth.
        """
        keys, held = [np.zeros(0, np.int64)], [np.zeros((len(groups), 0), np.bool_)]
        for one in self._held:
            lists = dict(zip(one.at.tolist(), np.split(one.slots, np.cumsum(one.sizes)[:-1]), strict=True))
            found = np.zeros((len(groups), one.part.header.texts), np.bool_)
            for row, group in zip(found, groups, strict=True):
                if all(at in lists for at in group):
                    counts = np.bincount(np.concatenate([lists[at] for at in group]), minlength=len(row))
                    row[:] = counts == len(group)
            if one.part.gone is not None:
                found[:, one.part.gone] = False
            slots = np.flatnonzero(found.any(axis=0))
            keys.append(one.part.header.keys[slots])
            held.append(found[:, slots])
        every, matrix = np.concatenate(keys), np.concatenate(held, axis=1)
        weights = np.array([self._view.idf(int(number)) for number in matrix.sum(axis=1)])
        order = np.lexsort((every, -(matrix * weights[:, None]).sum(axis=0), -matrix.sum(axis=0)))
        return every[order], matrix[:, order], weights

    def _summed(self, held: _Held) -> Scores:
        """What every text of a segment scores, summed in the order of the query."""
        slots = held.slots.astype(np.int64)
        worth = self._view.norms(held.part).take(slots)
        worth += held.counts
        np.divide(held.counts, worth, out=worth)
        worth *= np.repeat(self._weights[held.at], held.sizes)
        return np.bincount(slots, worth, held.part.header.texts).astype(np.float64, copy=False)

    def _few(self, held: _Held, slots: npt.NDArray[np.int64]) -> Scores:
        """The same for some texts of a segment."""
        places = np.full(held.part.header.texts, -1, np.int32)
        places[slots] = np.arange(len(slots))
        place = places.take(held.slots.astype(np.int64))
        theirs = np.flatnonzero(place >= 0)
        place, counts = place[theirs], held.counts[theirs].astype(np.float64)
        weights = self._weights[held.at[np.searchsorted(np.cumsum(held.sizes), theirs, "right")]]
        worth = counts / (self._view.norms(held.part)[slots][place] + counts)
        return np.bincount(place, worth * weights, len(slots)).astype(np.float64, copy=False)


def among(keys: Keys, others: Keys) -> npt.NDArray[np.bool_]:
    """Which of some keys are among others; both are in order."""
    found = np.zeros(len(keys), np.bool_)
    if len(others):
        mine = others[np.searchsorted(others, keys[0]) : np.searchsorted(others, keys[-1], "right")]
        at = np.searchsorted(keys, mine)
        found[at[keys[at] == mine]] = True
    return found


def _held(part: Part, numbers: Terms, read: ReadPieces) -> _Held | None:
    """The postings of some terms in a segment; None where it has none of them."""
    header = part.header
    if not len(header.terms):
        return None
    places = np.minimum(header.terms.searchsorted(numbers), len(header.terms) - 1)
    at = np.flatnonzero(header.terms[places] == numbers)
    if not len(at):
        return None
    starts, ends = header.starts[places[at]].astype(np.int64), header.starts[places[at] + 1].astype(np.int64)
    ranges = list(zip(starts.tolist(), ends.tolist(), strict=True))
    pieces = read(part.id, sorted({one for start, end in ranges for one in range(start // PIECE, -(-end // PIECE))}))
    slots, counts = list[Slots](), list[Counts]()
    for start, end in ranges:
        while start < end:
            number, first = divmod(start, PIECE)
            last = min(PIECE, end - number * PIECE)
            slots.append(pieces[number].slots[first:last])
            counts.append(pieces[number].counts[first:last])
            start = number * PIECE + last
    return _Held(part, at, ends - starts, np.concatenate(slots), np.concatenate(counts))


def _least(scores: Scores, limit: int) -> float:
    """The score that the best `limit` have at least; 0 where there are not more."""
    return float(np.partition(scores, -limit)[-limit]) if len(scores) > limit else 0.0


def _reached(scores: Scores, limit: int) -> float:
    """A score that `limit` texts reach, if so many have one: quicker found than the last of the best."""
    width = 8 * limit
    height = len(scores) // width
    if height < 2:
        return _least(scores, limit)
    # So many texts, each the best of its column, have the score that the best columns have at least.
    return _least(scores[: height * width].reshape(height, width).max(axis=0), limit)


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
        self._ids: dict[int, str] = {}

    def ids(self, keys: Sequence[int], read: Callable[[list[int]], Iterable[tuple[int, str]]]) -> dict[int, str]:
        """The ids of records by their keys, of which `read` is asked for those that are not held.

        A key has one id for ever.
        """
        known = self._ids
        missing = [key for key in keys if key not in known]
        if missing:
            if len(known) + len(missing) > IDS:
                self._ids = {}
            read_now = dict(read(missing))
            self._ids.update(read_now)
            return {key: known[key] if key in known else read_now[key] for key in keys}
        return {key: known[key] for key in keys}

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
