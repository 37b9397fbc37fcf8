"""The segments of collections as readers hold them, and when writers join some of them.

A store keeps three kinds of rows: headers of segments, pieces of their postings, and the keys of removed texts. Rows
never change; a reader that knows their ids knows their contents, so what is held in memory is never stale.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from homing.stores.postings.scoring import Part, View
from homing.stores.postings.segment import MAX_TEXTS, Postings, unpack, unpack_keys, unpack_piece

FAN_OUT = 4
"""Segments of about one size that lie side by side before they are joined."""
MEMORY = 96 * 1024 * 1024
"""Bytes of postings that are held."""
VIEWS = 256
"""Collections whose headers are held."""


class Rows(Protocol):
    """The rows of the index, as of one moment."""

    def header(self, segment: int) -> bytes:
        """The header of a segment."""
        ...

    def piece(self, segment: int, number: int) -> bytes:
        """A piece of its postings."""
        ...

    def removed(self, removal: int) -> bytes:
        """The keys of texts that were removed."""
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
        removed = unpack_keys(rows.removed(one) for one in removals)
        headers = {one: parts[one].header if one in parts else unpack(rows.header(one)) for one in segments}
        found = View([Part.of(one, header, removed) for one, header in headers.items()])
        with self._lock:
            self._views[collection] = (tuple(segments), tuple(removals), found)
            self._views.move_to_end(collection)
            while len(self._views) > VIEWS:
                self._views.popitem(last=False)
        return found

    def piece(self, rows: Rows, segment: int, number: int) -> Postings:
        """A piece of a segment, out of memory if it is held."""
        with self._lock:
            found = self._pieces.get((segment, number))
            if found is not None:
                self._pieces.move_to_end((segment, number))
                return found
        found = unpack_piece(rows.piece(segment, number))
        with self._lock:
            if (segment, number) not in self._pieces:
                self._pieces[segment, number] = found
                self._held += _bytes(found)
            while self._held > self._memory:
                self._held -= _bytes(self._pieces.popitem(last=False)[1])
        return found


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
