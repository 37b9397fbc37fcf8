"""A segment: the words of some texts, never changed once it is written.

For each term it holds the texts that have it (by slot, their place in the segment) and how often. A term is known by 64
bits: what a query asks is looked up, never listed. Postings lie in pieces of at most `PIECE`, term after
term, so that a reader of a large segment reads only what a query needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from homing.errors import StoreCorrupt
from homing.text.terms import Terms

MAX_TEXTS = 1 << 16
"""Texts of a segment, at most: a slot takes two bytes."""
STRETCH = 500_000
"""Postings that are joined at a time, about: what that takes in memory is thrown away before the next."""
PIECE = 1_300
"""Postings of a piece, at most; three bytes each. A row of so many fills a page of SQLite, and half of PostgreSQL's."""
FIRST_PIECE = 20_000
"""The same in segments that do not say it: the first ones."""

SLOT = np.dtype("<u2")

Keys = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.uint32]
Slots = npt.NDArray[np.uint16]
Counts = npt.NDArray[np.uint8]
Range = tuple[int, int]
"""Postings of a segment, one after the other: from the first to before the last."""
P = TypeVar("P")
T = TypeVar("T")


class Postings(NamedTuple):
    """Who has a term: slots, in order, and how often each has it (255 is 255 or more)."""

    slots: Slots
    counts: Counts


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a segment without its postings; term `i` has those from `starts[i]` to `starts[i + 1]`.

    They lie in pieces of `piece`.
    """

    keys: Keys
    lengths: Lengths
    terms: Terms
    starts: Lengths
    piece: int = PIECE

    @property
    def texts(self) -> int:
        """How many texts it holds."""
        return len(self.keys)

    @property
    def size(self) -> int:
        """How many postings it holds."""
        return int(self.starts[-1])

    def find(self, numbers: Terms) -> list[tuple[int, Range]]:
        """Which of some terms, which are in order, it has, and where their postings lie."""
        if not len(self.terms):
            return []
        places = self.terms.searchsorted(numbers)
        at = np.flatnonzero(self.terms.take(places, mode="clip") == numbers)
        found = places[at]
        ranges = zip(self.starts[found].tolist(), self.starts[found + 1].tolist(), strict=True)
        return list(zip(at.tolist(), ranges, strict=True))

    def pieces(self, ranges: Iterable[Range]) -> list[int]:
        """The numbers of the pieces in which some postings lie, in order."""
        size = self.piece
        return sorted({one for start, end in ranges for one in range(start // size, -(-end // size))})


@dataclass(frozen=True, slots=True)
class Segment:
    """A whole segment."""

    header: Header
    postings: Postings

    def pieces(self) -> Iterator[bytes]:
        """The postings as they are stored."""
        for start in range(0, self.header.size, self.header.piece):
            part = slice(start, start + self.header.piece)
            yield _guarded(self.postings.slots[part].astype(SLOT).tobytes() + self.postings.counts[part].tobytes())

    def contents(self) -> Iterator[tuple[int, dict[int, int]]]:
        """The key of each text, and how often it has each term, as `counted` counts."""
        terms = np.repeat(self.header.terms, np.diff(self.header.starts))
        order = np.argsort(self.postings.slots, kind="stable")
        ends = np.searchsorted(self.postings.slots[order], np.arange(self.header.texts + 1))
        for slot, key in enumerate(self.header.keys.tolist()):
            mine = order[ends[slot] : ends[slot + 1]]
            yield key, dict(zip(terms[mine].tolist(), self.postings.counts[mine].tolist(), strict=True))


def counted(said: Terms) -> dict[int, int]:
    """How often each term stands in a text, as a segment counts: up to 255."""
    return {term: min(255, number) for term, number in Counter(said.tolist()).items()}


def segment_of(texts: Sequence[tuple[int, Terms]]) -> Segment:
    """The segment of texts, each given by its key and all its terms; at most `MAX_TEXTS`, by ascending key."""
    lengths = np.array([len(said) for _, said in texts], np.uint32)
    flat = np.concatenate([np.zeros(0, np.uint64), *(said for _, said in texts)])
    order = np.argsort(flat)
    flat = flat[order]
    firsts = _firsts(flat)
    # Terms by their rank: with the slot behind it, a number that is sorted without looking anything up.
    ranks = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(flat))))
    held = ranks << 16 | np.repeat(np.arange(len(texts)), lengths)[order]
    held.sort()
    terms, firsts = flat[firsts], _firsts(held)
    counts, held = np.diff(np.append(firsts, len(held))), held[firsts]
    return Segment(
        Header(
            np.array([key for key, _ in texts], np.int64),
            lengths,
            terms,
            np.append(_firsts(held >> 16), len(held)).astype(np.uint32),
        ),
        Postings((held & 0xFFFF).astype(np.uint16), np.minimum(counts, 255).astype(np.uint8)),
    )


def _firsts(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Where another value begins, of values in order."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.int64)


def join(segments: Sequence[Segment], gone: Keys) -> Segment:
    """One segment of several, without the texts that are gone; its texts are in the order of their keys."""
    keys = np.concatenate([one.header.keys for one in segments])
    lengths = np.concatenate([one.header.lengths for one in segments])
    alive = ~np.isin(keys, gone)
    in_order = bool((keys[1:] > keys[:-1]).all())
    order = np.argsort(keys, kind="stable")
    place = np.empty(len(keys), np.int32)
    place[order] = np.cumsum(alive[order]) - 1
    place[~alive] = -1
    places = np.split(place, np.cumsum([one.header.texts for one in segments])[:-1])
    # The numbers of terms are spread evenly, so equal stretches of them are about equally long.
    stretches = 1 + sum(one.header.size for one in segments) // STRETCH
    bounds = np.array([2**64 * number // stretches for number in range(1, stretches)], np.uint64)
    cuts = [np.searchsorted(one.header.terms, bounds).tolist() for one in segments]
    ends = [[0, *cut, len(one.header.terms)] for one, cut in zip(segments, cuts, strict=True)]
    joined = [
        _join_stretch(
            [_Stretch(one, mine, cut[at : at + 2]) for one, mine, cut in zip(segments, places, ends, strict=True)],
            in_order=in_order,
        )
        for at in range(stretches)
    ]
    terms = np.concatenate([one for one, _, _ in joined])
    sizes = np.concatenate([one for _, one, _ in joined])
    postings = [one for _, _, one in joined]
    order = order[alive[order]]
    return Segment(
        Header(keys[order], lengths[order], terms, np.append(0, np.cumsum(sizes)).astype(np.uint32)),
        Postings(np.concatenate([one.slots for one in postings]), np.concatenate([one.counts for one in postings])),
    )


class _Stretch(NamedTuple):
    """Some of the terms of a segment that is joined, and where its texts go; -1 is nowhere."""

    segment: Segment
    places: npt.NDArray[np.int32]
    ends: list[int]

    def read(self) -> tuple[Terms, npt.NDArray[np.int32], Counts]:
        """Term, new place and count of every posting that stays."""
        header, postings = self.segment.header, self.segment.postings
        first, last = self.ends
        held = slice(int(header.starts[first]), int(header.starts[last]))
        places = self.places[postings.slots[held]]
        kept = places >= 0
        terms = np.repeat(header.terms[first:last], np.diff(header.starts[first : last + 1]))
        return terms[kept], places[kept], postings.counts[held][kept]


def _join_stretch(parts: Sequence[_Stretch], *, in_order: bool) -> tuple[Terms, npt.NDArray[np.int64], Postings]:
    """The terms of a stretch, how many postings each has, and the postings; `in_order`, later parts go behind."""
    read = [one.read() for one in parts]
    terms, places, counts = (np.concatenate(column) for column in zip(*read, strict=True))
    # Runs that are sorted already, which a stable sort joins in a few passes.
    order = np.argsort(terms, kind="stable") if in_order else np.lexsort((places, terms))
    terms = terms[order]
    firsts = _firsts(terms)
    return (
        terms[firsts],
        np.diff(np.append(firsts, len(terms))),
        Postings(places[order].astype(np.uint16), counts[order]),
    )


def decoding(decode: Callable[[P], T]) -> Callable[[P], T]:
    """What is shorter than it says is damaged, whatever numpy says to it."""

    @wraps(decode)
    def checked(stored: P) -> T:
        try:
            return decode(stored)
        except ValueError:
            raise StoreCorrupt("the keyword index is damaged: a part is cut off; run homing repair") from None

    return checked


def pack(header: Header) -> bytes:
    """A header as it is stored."""
    sizes = np.array([header.texts, len(header.terms)], "<u4").tobytes()
    return _guarded(
        sizes
        + header.keys.astype("<i8").tobytes()
        + header.terms.astype("<u8").tobytes()
        + header.lengths.astype("<u4").tobytes()
        + header.starts.astype("<u4").tobytes()
        + np.array(header.piece, "<u4").tobytes()
    )


@decoding
def unpack(stored: bytes) -> Header:
    """The header that `pack` stored. Raises StoreCorrupt where it is damaged."""
    body = _checked(stored)
    texts, terms = (int(one) for one in np.frombuffer(body, "<u4", 2))
    at = 8
    keys = np.frombuffer(body, "<i8", texts, at).astype(np.int64, copy=False)
    at += 8 * texts
    hashes = np.frombuffer(body, "<u8", terms, at).astype(np.uint64, copy=False)
    at += 8 * terms
    lengths = np.frombuffer(body, "<u4", texts, at).astype(np.uint32, copy=False)
    at += 4 * texts
    starts = np.frombuffer(body, "<u4", terms + 1, at).astype(np.uint32, copy=False)
    at += 4 * (terms + 1)
    piece = int(np.frombuffer(body, "<u4", 1, at)[0]) if at < len(body) else FIRST_PIECE
    return Header(keys, lengths, hashes, starts, piece)


@decoding
def unpack_piece(stored: bytes) -> Postings:
    """The postings of a piece. Raises StoreCorrupt where it is damaged."""
    body = _checked(stored)
    size = len(body) // 3
    slots = np.frombuffer(body, SLOT, size).astype(np.uint16, copy=False)
    return Postings(slots, np.frombuffer(body, np.uint8, size, 2 * size))


def lists_in(header: Header, ranges: Iterable[Range], stored: Mapping[int, bytes]) -> list[Postings]:
    """Postings of a segment, out of the pieces in which they lie, by number.

    Raises StoreCorrupt where a piece is damaged.
    """
    size, numbers = header.piece, sorted(stored)
    bodies = [_checked(stored[number]) for number in numbers]
    # Behind each other: only the last one of a segment is not full, so a list lies in one stretch.
    slots = np.frombuffer(b"".join([body[: len(body) // 3 * 2] for body in bodies]), SLOT)
    counts = np.frombuffer(b"".join([body[len(body) // 3 * 2 :] for body in bodies]), np.uint8)
    if len(counts) != sum([min(size, header.size - number * size) for number in numbers]):
        raise StoreCorrupt("the keyword index is damaged: some postings are missing; run homing repair")
    moved = {number: (row - number) * size for row, number in enumerate(numbers)}
    stretches = [(start + moved[start // size], end + moved[start // size]) for start, end in ranges]
    return [Postings(slots[start:end], counts[start:end]) for start, end in stretches]


def whole(header: Header, pieces: Iterable[Postings]) -> Segment:
    """A segment of its parts."""
    found = list(pieces)
    slots = np.concatenate([one.slots for one in found]) if found else np.zeros(0, np.uint16)
    counts = np.concatenate([one.counts for one in found]) if found else np.zeros(0, np.uint8)
    if len(slots) != header.size:
        raise StoreCorrupt("the keyword index is damaged: some postings are missing; run homing repair")
    return Segment(header, Postings(slots, counts))


def pack_keys(keys: Keys) -> bytes:
    """Keys of texts as they are stored."""
    return _guarded(keys.astype("<i8").tobytes())


@decoding
def unpack_keys(stored: Iterable[bytes]) -> Keys:
    """All the keys that were stored, in order. Raises StoreCorrupt where they are damaged."""
    return np.sort(np.frombuffer(b"".join(map(_checked, stored)), "<i8")).astype(np.int64, copy=False)


def _guarded(body: bytes) -> bytes:
    return crc32(body).to_bytes(4, "little") + body


def _checked(stored: bytes) -> bytes:
    # A copy: arrays that do not begin at a multiple of their width would be copied by every search in them.
    body = stored[4:]
    if len(stored) < 4 or crc32(body) != int.from_bytes(stored[:4], "little"):
        raise StoreCorrupt("the keyword index is damaged: a checksum does not match; run homing repair")
    return body
