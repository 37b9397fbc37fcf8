"""The words of collections as readers hold them, and when writers join some of their segments.

A store keeps three kinds of rows: headers of segments, pieces of their postings, and the keys of removed texts. Rows
never change; a reader that knows their ids knows their contents, so what is held in memory is never stale.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from homing.stores.postings.segment import (
    MAX_TEXTS,
    Header,
    Keys,
    Postings,
    Range,
    lists_in,
    unpack,
    unpack_keys,
)
from homing.text.terms import numbers_of

FAN_OUT = 4
"""Segments of about one size that lie side by side before they are joined."""
MEMORY = 96 * 1024 * 1024
"""Bytes of postings that are held."""
OVERHEAD = 600
"""Bytes that a list of postings takes beside its postings."""
VIEWS = 256
"""Collections whose headers are held."""
IDS = 50_000
"""Ids of records that are held."""
GROUP = 2 * MAX_TEXTS
"""Places of a group, at most: what is summed at once stays in the processor's cache."""
TERMS = 20_000
"""Terms of a collection of which it is held where they are."""
K1 = 1.2
B = 0.75
MIN_IDF = 1e-6
"""The idf of a term that half of the texts hold, or more."""

Scores = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
_serials = count(-1, -1)


@dataclass(frozen=True, slots=True)
class Part:
    """A segment as a search sees it; `gone` says of each slot whether its text was taken out, None where none was.

    `texts` and `words` count what is left.
    """

    id: int
    header: Header
    gone: Mask | None
    texts: int
    words: int

    @classmethod
    def of(cls, segment: int, header: Header, removed: Keys) -> Part:
        """A segment without removed texts, whose keys are in order."""
        gone = among(header.keys, removed)
        left = header.lengths[~gone]
        return cls(segment, header, gone if gone.any() else None, len(left), int(left.sum(dtype=np.int64)))

    def holders(self, ranges: Sequence[Range], read: ReadLists) -> Sequence[int]:
        """How many texts that were not removed have each of some terms, given by where their postings lie."""
        if self.gone is None or not ranges:
            return [end - start for start, end in ranges]
        alive = ~self.gone
        return [int(np.count_nonzero(alive.take(one.slots))) for one in read([(self, ranges)], True)]


ReadLists = Callable[[Sequence[tuple[Part, Sequence[Range]]], bool], Sequence[Postings]]
"""Reads lists of postings of some segments, given by where they lie in each; whether they will be asked for again."""


class Term(NamedTuple):
    """A term that is asked: how many texts hold it, what it is worth, and where its postings are.

    For each group of segments: of the segments that have it the number in the group, and where the postings lie.
    """

    number: int
    holders: int
    weight: float
    lists: Sequence[Sequence[tuple[int, Range]]]


class Group:
    """Segments that are scored together: a large one, or several small ones behind each other.

    The place of a text is its slot and the `base` of its segment.
    """

    def __init__(self, parts: Sequence[Part], mean: float) -> None:
        self.parts = parts
        self.bases: list[int] = [0, *np.cumsum([one.header.texts for one in parts]).tolist()]
        self.serial = next(_serials)
        """Below 0, and no other group has it, nor ever had."""
        self._mean = mean
        self._passing: tuple[Keys | None, Mask, Places] = (None, np.zeros(0, np.bool_), np.zeros(0, np.int64))

    @property
    def texts(self) -> int:
        """How many places there are."""
        return self.bases[-1]

    @cached_property
    def norms(self) -> Scores:
        """How much the length of each text counts against it."""
        lengths = np.concatenate([one.header.lengths for one in self.parts], dtype=np.float64)
        lengths *= K1 * B / self._mean
        lengths += K1 * (1 - B)
        return lengths

    @cached_property
    def gone(self) -> Places | None:
        """The places of removed texts; None where there are none."""
        if all(one.gone is None for one in self.parts):
            return None
        masks = [np.zeros(one.header.texts, np.bool_) if one.gone is None else one.gone for one in self.parts]
        return np.flatnonzero(np.concatenate(masks))

    def passing(self, allowed: Keys) -> tuple[Mask, Places]:
        """Which places have one of these keys, and those places.

        The last answer is held: the same keys are asked for again and again.
        """
        known, mask, places = self._passing
        if known is not allowed:
            mask = np.concatenate([among(one.header.keys, allowed) for one in self.parts])
            places = np.flatnonzero(mask)
            self._passing = (allowed, mask, places)
        return mask, places

    @cached_property
    def keys(self) -> Keys:
        """The key of the text at each place."""
        keys = [one.header.keys for one in self.parts]
        return np.concatenate(keys) if len(keys) > 1 else keys[0]

    def places(self, keys: Keys) -> tuple[Places, Places]:
        """Which of some keys are here, and their places."""
        which, places = list[Places](), list[Places]()
        for part, base in zip(self.parts, self.bases, strict=False):
            held = part.header.keys
            slots = np.minimum(held.searchsorted(keys), len(held) - 1)
            mine = np.flatnonzero(held[slots] == keys)
            which.append(mine)
            places.append(slots[mine] + base)
        return np.concatenate(which), np.concatenate(places)


@dataclass(frozen=True)
class View:
    """The words of a collection at one moment. What a query needs of them is held in `cache`, with that of others."""

    parts: Sequence[Part]
    cache: Cache = field(default_factory=lambda: Cache(MEMORY))
    spellings: dict[str, str] = field(default_factory=dict)
    """What unknown words were read as, as far as it was looked up: each leg of a search asks for the same."""
    _terms: dict[str, Term] = field(default_factory=dict)

    @cached_property
    def texts(self) -> int:
        """How many texts there are."""
        return sum(one.texts for one in self.parts)

    @cached_property
    def mean(self) -> float:
        """How many words a text has in the mean."""
        return max(1.0, sum(one.words for one in self.parts) / max(1, self.texts))

    @cached_property
    def groups(self) -> list[Group]:
        """The segments in as few groups as hold at most `MAX_TEXTS` each, about; the largest first."""
        groups, sizes = list[list[Part]](), list[int]()
        for part in sorted(self.parts, key=lambda one: -one.header.texts):
            if not groups or sizes[-1] + part.header.texts > GROUP:
                groups.append([])
                sizes.append(0)
            groups[-1].append(part)
            sizes[-1] += part.header.texts
        return [Group(one, self.mean) for one in groups]

    def numbers(self) -> set[int]:
        """The numbers of the segments and groups, under which the cache may hold something."""
        groups: Sequence[Group] = vars(self).get("groups", ())
        return {one.id for one in self.parts} | {one.serial for one in groups}

    def terms(self, words: Sequence[str], read: ReadLists) -> list[Term]:
        """Some terms, each looked up once."""
        known = self._terms
        found = {word: term for word in words if (term := known.get(word)) is not None}
        if missing := [word for word in words if word not in found]:
            found |= zip(missing, self._look_up(missing, read), strict=True)
            if len(known) + len(missing) > TERMS:
                known.clear()
            known.update(found)
        return [found[word] for word in words]

    def idf(self, holders: int) -> float:
        """What a term is worth that so many texts hold."""
        return max(MIN_IDF, math.log(max(self.texts - holders + 0.5, 0.5) / (holders + 0.5)))

    def _look_up(self, words: Sequence[str], read: ReadLists) -> list[Term]:
        """Some terms, of which none will be remembered."""
        numbers = numbers_of(words)
        # In order they are found far quicker.
        order = np.argsort(numbers)
        ordered, places = numbers[order], order.tolist()
        lists: list[list[list[tuple[int, Range]]]] = [[[] for _ in self.groups] for _ in words]
        holders = [0] * len(words)
        for of_group, group in enumerate(self.groups):
            for of_part, part in enumerate(group.parts):
                found = part.header.find(ordered)
                counts = part.holders([one for _, one in found], read)
                for (at, one), held in zip(found, counts, strict=True):
                    lists[places[at]][of_group].append((of_part, one))
                    holders[places[at]] += held
        terms = zip(numbers.tolist(), holders, lists, strict=True)
        return [Term(number, held, self.idf(held), where) for number, held, where in terms]


def among(keys: Keys, others: Keys) -> Mask:
    """Which of some keys are among others; both are in order."""
    found = np.zeros(len(keys), np.bool_)
    if len(others):
        mine = others[np.searchsorted(others, keys[0]) : np.searchsorted(others, keys[-1], "right")]
        at = np.searchsorted(keys, mine)
        found[at[keys[at] == mine]] = True
    return found


class Rows(Protocol):
    """The rows of the index, as of one moment."""

    def headers(self, segments: Sequence[int]) -> Mapping[int, bytes]:
        """The headers of segments, by id."""
        ...

    def pieces(self, numbers: Mapping[int, Sequence[int]]) -> Mapping[int, Mapping[int, bytes]]:
        """Pieces of the postings of segments, by segment and number; the numbers are given by segment."""
        ...

    def removed(self, removals: Sequence[int]) -> Mapping[int, bytes]:
        """The keys of texts that were removed, by row."""
        ...


class Cache:
    """What is held in memory of the postings of all collections: what was used last, within a bound of bytes.

    Safe from several threads.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[int, int], tuple[Any, int]] = OrderedDict()
        self._places: dict[int, set[int]] = {}
        self._bytes = 0

    def get(self, keys: Sequence[tuple[int, int]]) -> list[Any]:
        """What is held under some keys; None where nothing is."""
        held, found = self._held, list[Any]()
        with self._lock:
            for key in keys:
                one = held.get(key)
                if one is not None:
                    held.move_to_end(key)
                    found.append(one[0])
                else:
                    found.append(None)
        return found

    def put(self, fresh: Iterable[tuple[tuple[int, int], Sequence[npt.NDArray[Any]]]]) -> None:
        """Hold pairs of arrays by their keys, and let go of what was not used for long."""
        held, places_of = self._held, self._places
        with self._lock:
            for key, arrays in fresh:
                if key not in held:
                    size = OVERHEAD + arrays[0].nbytes + arrays[1].nbytes
                    held[key] = (arrays, size)
                    places_of.setdefault(key[0], set()).add(key[1])
                    self._bytes += size
            while self._bytes > self._memory:
                (number, place), (_, size) = self._held.popitem(last=False)
                places = self._places[number]
                places.remove(place)
                if not places:
                    del self._places[number]
                self._bytes -= size

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of all that is held of some segments or groups: there will be no question about them."""
        with self._lock:
            for number in numbers:
                for place in self._places.pop(number, ()):
                    self._bytes -= self._held.pop((number, place))[1]


class Index:
    """What is held in memory of the words of a store. Safe from several threads."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._lock = threading.Lock()
        self._views: OrderedDict[int, tuple[tuple[int, ...], tuple[int, ...], View]] = OrderedDict()
        self._cache = Cache(memory)
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
        stored = dict(rows.headers([one for one in segments if one not in parts]))
        # What was unpacked is let go: all headers are not to be in memory twice.
        headers = {one: parts[one].header if one in parts else unpack(stored.pop(one)) for one in segments}
        found = View([Part.of(one, header, removed) for one, header in headers.items()], self._cache)
        if known is not None:
            self._cache.forget(known[2].numbers() - found.numbers())
        with self._lock:
            self._views[collection] = (tuple(segments), tuple(removals), found)
            self._views.move_to_end(collection)
            while len(self._views) > VIEWS:
                self._views.popitem(last=False)
        return found

    def lists(self, rows: Rows, asked: Sequence[tuple[Part, Sequence[Range]]], again: bool) -> list[Postings]:
        """Lists of postings of segments, one after the other, as they were asked for.

        Out of memory where they are held, and held where they will be asked for again; all others are read at once.
        """
        keys = [(part.id, start) for part, ranges in asked for start, _ in ranges]
        found: list[Postings] = self._cache.get(keys)
        missing = {key for key, one in zip(keys, found, strict=True) if one is None}
        if not missing:
            return found
        wanted = [(part, [one for one in ranges if (part.id, one[0]) in missing]) for part, ranges in asked]
        pieces = rows.pieces({part.id: part.header.pieces(ranges) for part, ranges in wanted if ranges})
        fresh = dict[tuple[int, int], Postings]()
        for part, ranges in wanted:
            read = lists_in(part.header, ranges, pieces.get(part.id, {}))
            fresh.update(zip([(part.id, start) for start, _ in ranges], read, strict=True))
        if again:
            # Copies: a part of an array would keep all of it in memory.
            fresh = {key: Postings(one.slots.copy(), one.counts.copy()) for key, one in fresh.items()}
            self._cache.put(fresh.items())
        return [fresh[key] if key in missing else one for key, one in zip(keys, found, strict=True)]


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
