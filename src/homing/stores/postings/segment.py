"""A segment: the words of some texts, never changed once it is written.

For each term it holds the texts that have it (by slot, their place in the segment) and how often. A term is known by 64
bits: what a query asks is looked up, never listed. Postings lie in pieces of at most `PIECE`, term after
term, so that a reader of a large segment reads only what a query needs.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from zlib import crc32

import numpy as np
import numpy.typing as npt

from homing.errors import StoreCorrupt

MAX_TEXTS = 1 << 16
"""Texts of a segment, at most: a slot takes two bytes."""
SHORT = 7
"""Bytes of a term that needs no hash."""
MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number: multiplied by it, no two numbers become one."""
PIECE = 20_000
"""Postings of a piece, at most; three bytes each."""

Keys = npt.NDArray[np.int64]
Terms = npt.NDArray[np.uint64]
Lengths = npt.NDArray[np.uint32]
Slots = npt.NDArray[np.uint16]
Counts = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Postings:
    """Who has a term: slots, in order, and how often each has it (255 is 255 or more)."""

    slots: Slots
    counts: Counts


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a segment without its postings; term `i` has those from `starts[i]` to `starts[i + 1]`."""

    keys: Keys
    lengths: Lengths
    terms: Terms
    starts: Lengths

    @property
    def texts(self) -> int:
        """How many texts it holds."""
        return len(self.keys)

    @property
    def size(self) -> int:
        """How many postings it holds."""
        return int(self.starts[-1])

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return self.keys.nbytes + self.lengths.nbytes + self.terms.nbytes + self.starts.nbytes


@dataclass(frozen=True, slots=True)
class Segment:
    """A whole segment."""

    header: Header
    postings: Postings

    def pieces(self) -> Iterator[bytes]:
        """The postings as they are stored."""
        for start in range(0, self.header.size, PIECE):
            part = slice(start, start + PIECE)
            yield _guarded(self.postings.slots[part].astype("<u2").tobytes() + self.postings.counts[part].tobytes())

    def contents(self) -> Iterator[tuple[int, dict[int, int]]]:
        """The key of each text, and how often it has each term, as `counted` counts."""
        terms = np.repeat(self.header.terms, np.diff(self.header.starts))
        order = np.argsort(self.postings.slots, kind="stable")
        ends = np.searchsorted(self.postings.slots[order], np.arange(self.header.texts + 1))
        for slot, key in enumerate(self.header.keys.tolist()):
            mine = order[ends[slot] : ends[slot + 1]]
            yield key, dict(zip(terms[mine].tolist(), self.postings.counts[mine].tolist(), strict=True))


def counted(words: Sequence[str]) -> dict[int, int]:
    """How often each term stands among some words, as a segment counts: up to 255."""
    found = Counter(words)
    return dict(zip(numbers_of(found).tolist(), [min(255, number) for number in found.values()], strict=True))


def build(texts: Sequence[tuple[int, Sequence[str]]]) -> Segment:
    """The segment of some texts, given as key and tokens; at most `MAX_TEXTS`, by ascending key."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    lengths = np.fromiter((len(words) for _, words in texts), np.uint32, len(texts))
    every = chain.from_iterable([words for _, words in texts])
    flat = np.fromiter(map(numbers.__getitem__, every), np.int64, int(lengths.sum()))
    terms, ranks = np.unique(numbers_of(numbers), return_inverse=True)
    slots = np.repeat(np.arange(len(texts), dtype=np.int64), lengths)
    held, counts = np.unique((ranks[flat] << 16) | slots, return_counts=True)
    starts = np.searchsorted(held, np.arange(len(terms) + 1, dtype=np.int64) << 16)
    keys = np.fromiter((key for key, _ in texts), np.int64, len(texts))
    return Segment(
        Header(keys, lengths, terms, starts.astype(np.uint32)),
        Postings((held & 0xFFFF).astype(np.uint16), np.minimum(counts, 255).astype(np.uint8)),
    )


def join(segments: Sequence[Segment], gone: Keys) -> Segment:
    """One segment of several, without the texts that are gone; its texts are in the order of their keys."""
    keys = np.concatenate([one.header.keys for one in segments])
    alive = ~np.isin(keys, gone)
    order = np.argsort(keys, kind="stable")
    place = np.empty(len(keys), np.int64)
    place[order] = np.cumsum(alive[order]) - 1
    bases = np.cumsum([0, *(one.header.texts for one in segments)])
    olds = np.concatenate(
        [one.postings.slots.astype(np.int64) + base for one, base in zip(segments, bases[:-1], strict=True)]
    )
    terms = np.concatenate([np.repeat(one.header.terms, np.diff(one.header.starts)) for one in segments])
    counts = np.concatenate([one.postings.counts for one in segments])
    kept = alive[olds]
    terms, counts, slots = terms[kept], counts[kept], place[olds[kept]]
    # Runs that are sorted already, which a stable sort joins in a few passes.
    sorted_ = np.lexsort((slots, terms)) if np.any(np.diff(keys) < 0) else np.argsort(terms, kind="stable")
    distinct, firsts = np.unique(terms[sorted_], return_index=True)
    order = order[alive[order]]
    lengths = np.concatenate([one.header.lengths for one in segments])
    return Segment(
        Header(keys[order], lengths[order], distinct, np.append(firsts, len(sorted_)).astype(np.uint32)),
        Postings(slots[sorted_].astype(np.uint16), counts[sorted_]),
    )


def pack(header: Header) -> bytes:
    """A header as it is stored."""
    sizes = np.array([header.texts, len(header.terms)], "<u4").tobytes()
    return _guarded(
        sizes
        + header.keys.astype("<i8").tobytes()
        + header.terms.astype("<u8").tobytes()
        + header.lengths.astype("<u4").tobytes()
        + header.starts.astype("<u4").tobytes()
    )


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
    return Header(keys, lengths, hashes, np.frombuffer(body, "<u4", terms + 1, at).astype(np.uint32, copy=False))


def unpack_piece(stored: bytes) -> Postings:
    """The postings of a piece. Raises StoreCorrupt where it is damaged."""
    body = _checked(stored)
    size = len(body) // 3
    slots = np.frombuffer(body, "<u2", size).astype(np.uint16, copy=False)
    return Postings(slots, np.frombuffer(body, np.uint8, size, 2 * size))


def whole(header: Header, pieces: Iterable[Postings]) -> Segment:
    """A segment of its parts."""
    found = list(pieces)
    slots = np.concatenate([one.slots for one in found]) if found else np.zeros(0, np.uint16)
    counts = np.concatenate([one.counts for one in found]) if found else np.zeros(0, np.uint8)
    if len(slots) != header.size:
        raise StoreCorrupt("the keyword index is damaged: some postings are missing; run homing doctor")
    return Segment(header, Postings(slots, counts))


def pack_keys(keys: Keys) -> bytes:
    """Keys of texts as they are stored."""
    return _guarded(keys.astype("<i8").tobytes())


def unpack_keys(stored: Iterable[bytes]) -> Keys:
    """All the keys that were stored, in order. Raises StoreCorrupt where they are damaged."""
    return np.sort(np.frombuffer(b"".join(map(_checked, stored)), "<i8")).astype(np.int64, copy=False)


def numbers_of(terms: Iterable[str]) -> Terms:
    """The 64 bits that each of these terms is known by: its own where it is short, else those of its hash, mixed.

    Mixed, so that nobody reads in a file what was said: words of a removed text stay in it until segments are joined.
    """
    encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
    found = np.array(encoded, "S8").view("<u8").astype(np.uint64, copy=False)
    long = [at for at, one in enumerate(encoded) if len(one) > SHORT]
    # The last byte keeps them apart from every short one.
    hashes = [hashlib.blake2b(encoded[at], digest_size=SHORT).digest() + b"\xff" for at in long]
    found[long] = np.frombuffer(b"".join(hashes), "<u8")
    return found * MIX


def _guarded(body: bytes) -> bytes:
    return crc32(body).to_bytes(4, "little") + body


def _checked(stored: bytes) -> bytes:
    body = stored[4:]
    if crc32(body) != int.from_bytes(stored[:4], "little"):
        raise StoreCorrupt("the keyword index is damaged: a checksum does not match; run homing doctor")
    return body
