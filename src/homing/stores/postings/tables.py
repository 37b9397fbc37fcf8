"""The rows of the keyword index, and how they change: the same in every database that keeps them.

A write adds a segment of its texts and the keys of those that it removes, in the transaction of the texts. Rows never
change. Small segments are joined by whoever writes, at once; large ones by `Merger`, a thread beside. One transaction
at a time joins segments of a collection, however many add some: a join takes only what it has read, so what others
add or remove meanwhile stands.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from homing.database import Transaction
from homing.errors import HomingError, StoreCorrupt
from homing.stores.postings.index import Scores, among, due
from homing.stores.postings.question import Question
from homing.stores.postings.segment import (
    MAX_TEXTS,
    Keys,
    Segment,
    join,
    pack,
    pack_keys,
    segment_of,
    unpack,
    unpack_keys,
    unpack_piece,
    whole,
)
from homing.text.terms import Terms

log = logging.getLogger(__name__)

AT_ONCE = 200_000
"""Postings that are joined inside a write, at most: some hundredths of a second."""
PURGED = 50_000
"""Postings that are written anew when texts are deleted, at most."""
REMOVALS = 32
"""Rows of removed keys before they are written as one."""
NAMED = 20_000
"""Records of a filter up to which all of them are read, and the search is among those."""
RARE = 8
"""A filter that lets at most one record in so many pass is rare: those are read first."""
ANEW = 10_000
"""Texts whose words are in memory at once when all are written anew."""
AT_A_TIME = 100
"""Segments that one statement reads pieces of, at most."""
OVERFETCH = 4
"""How many times as many records are looked at, where a filter may leave some out."""

P = TypeVar("P")


class Listed(NamedTuple):
    """A segment as its row names it."""

    id: int
    texts: int
    postings: int


@dataclass(frozen=True, slots=True)
class Join:
    """Segments that are to become one, as they were read, and the keys that were removed by then."""

    collection: int
    chosen: list[int]
    parts: list[Segment]
    removed: Keys

    def joined(self) -> Segment:
        """The one segment."""
        return join(self.parts, self.removed)


class WordTables:
    """The words of collections as one transaction sees and changes them. `owner` are columns that each row has."""

    def __init__(self, transaction: Transaction, owner: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._rows = transaction.rows
        self._each = transaction.each
        self._owner = owner

    def alone(self, collection: int) -> bool:
        """Whether this transaction may join segments of a collection, until its end; it does not wait for that."""
        return True

    def segments(self, collection: int) -> list[Listed]:
        """Every segment."""
        sql = "SELECT id, texts, postings FROM word_segments WHERE collection = $1 ORDER BY id"
        return [Listed(*row) for row in self._rows(sql, collection)]

    def removals(self, collection: int) -> list[int]:
        """The ids of the rows of removed keys."""
        sql = "SELECT id FROM word_removals WHERE collection = $1 ORDER BY id"
        return [one for (one,) in self._rows(sql, collection)]

    def state(self, collection: int) -> tuple[list[int], list[int]]:
        """The ids of its segments, and of the rows of removed keys."""
        sql = (
            "SELECT id, 0 FROM word_segments WHERE collection = $1 "
            "UNION ALL SELECT id, 1 FROM word_removals WHERE collection = $1"
        )
        found: tuple[list[int], list[int]] = [], []
        for one, kind in self._rows(sql, collection):
            found[kind].append(one)
        return sorted(found[0]), sorted(found[1])

    def headers(self, segments: Sequence[int]) -> dict[int, bytes]:
        """The headers of segments, by id."""
        return self._blobs("SELECT id, header FROM word_segments WHERE id = ANY($1)", segments)

    def removed(self, removals: Sequence[int]) -> dict[int, bytes]:
        """The keys of texts that were removed, by row."""
        return self._blobs("SELECT id, keys FROM word_removals WHERE id = ANY($1)", removals)

    def pieces(self, numbers: Mapping[int, Sequence[int]]) -> dict[int, dict[int, bytes]]:
        """Pieces of the postings of segments, by segment and number; the numbers are given by segment."""
        one = "SELECT segment, number, postings FROM word_pieces WHERE segment = ${} AND number = ANY(${})"
        found: dict[int, dict[int, bytes]] = {segment: {} for segment in numbers}
        left = iter(numbers.items())
        while some := list(islice(left, AT_A_TIME)):
            sql = " UNION ALL ".join([one.format(at, at + 1) for at in range(1, 2 * len(some), 2)])
            for segment, number, stored in self._rows(sql, *chain.from_iterable(some)):
                found[segment][number] = bytes(stored)
        for segment, asked in numbers.items():
            _complete(found[segment], len(asked))
        return found

    def removed_keys(self, collection: int) -> Keys:
        """The keys of all texts that were removed and that segments still hold."""
        return unpack_keys(self.removed(self.removals(collection)).values())

    def contents(self, collection: int) -> Iterator[tuple[int, int, dict[int, int]]]:
        """What the index holds of every record: its key, how many words it has, and how often it has each term."""
        removed = self.removed_keys(collection)
        for one in self.segments(collection):
            found = join([self._segment(one.id)], removed)
            lengths = found.header.lengths.tolist()
            for length, (key, counts) in zip(lengths, found.contents(), strict=True):
                yield key, length, counts

    def add(self, collection: int, texts: Sequence[tuple[int, Terms]]) -> None:
        """Write the words of texts, given by ascending key."""
        for start in range(0, len(texts), MAX_TEXTS):
            self._insert_segment(collection, segment_of(texts[start : start + MAX_TEXTS]))

    def rebuild(self, collection: int, texts: Iterable[tuple[int, Terms]]) -> int:
        """Write all words of a collection anew, of texts by ascending key; returns how many texts those are.

        Nobody else may write to the collection meanwhile.
        """
        mine = "SELECT id FROM word_segments WHERE collection = $1"
        self._rows(f"DELETE FROM word_pieces WHERE segment IN ({mine})", collection)
        for table in ("word_segments", "word_removals"):
            self._rows(f"DELETE FROM {table} WHERE collection = $1", collection)
        count, left = 0, iter(texts)
        while some := list(islice(left, ANEW)):
            self.add(collection, some)
            count += len(some)
        return count

    def remove(self, collection: int, keys: Sequence[int]) -> None:
        """Take texts out."""
        self._insert_removed(collection, np.array(keys, np.int64))

    def purge(self, collection: int) -> None:
        """Write segments that hold removed texts anew, where that is quickly done."""
        if not self.alone(collection):
            return
        removed = self.removed_keys(collection)
        left = PURGED
        for one in self.segments(collection):
            if one.postings <= left and among(self._keys(one.id), removed).any():
                left -= one.postings
                self._join(Join(collection, [one.id], [self._segment(one.id)], removed))

    def drop_some(self, collection: int) -> bool:
        """Remove a part of what a collection has in the index; whether there was anything."""
        found = [one.id for one in self.segments(collection)]
        self._delete(found[:1])
        self._rows("DELETE FROM word_removals WHERE collection = $1", collection)
        return bool(found)

    def tidy(self, collection: int) -> bool:
        """Join what is small and due; whether something is left that `Merger` should join."""
        if not self.alone(collection):
            # Whoever is at it may take away what the rows name; they can only be counted.
            return bool(due([one[:2] for one in self.segments(collection)]))
        while chosen := self.due(collection):
            if sum(one.postings for one in self.segments(collection) if one.id in chosen) > AT_ONCE:
                break
            self._join(self.read(collection, chosen))
        if len(self.removals(collection)) > REMOVALS:
            self._resolve(collection, np.zeros(0, np.int64))
        return bool(chosen)

    def due(self, collection: int) -> list[int]:
        """Which segments are to be joined: several of about one size, or one of which half was removed."""
        segments = self.segments(collection)
        if chosen := due([one[:2] for one in segments]):
            return chosen
        sql = "SELECT coalesce(sum(texts), 0) FROM word_removals WHERE collection = $1"
        [(count,)] = self._rows(sql, collection)
        if not count or int(count) * 4 < sum(one.texts for one in segments):
            return []
        removed = self.removed_keys(collection)
        wasted = (one for one in segments if 2 * int(among(self._keys(one.id), removed).sum()) >= one.texts)
        return [one.id for one in wasted][:1]

    def read(self, collection: int, chosen: list[int]) -> Join:
        """What is needed to join segments."""
        return Join(collection, chosen, [self._segment(one) for one in chosen], self.removed_keys(collection))

    def exchange(self, work: Join, joined: Segment) -> None:
        """Put a joined segment in the place of its parts, unless somebody joined or dropped some of them meanwhile."""
        if {one.id for one in self.segments(work.collection)}.issuperset(work.chosen):
            self._delete(work.chosen)
            if joined.header.texts:
                self._insert_segment(work.collection, joined)
            resolved = np.intersect1d(work.removed, np.concatenate([one.header.keys for one in work.parts]))
            if len(resolved):
                self._resolve(work.collection, resolved)

    def _join(self, work: Join) -> None:
        self.exchange(work, work.joined())

    def _resolve(self, collection: int, resolved: Keys) -> None:
        """Write the removed keys as one row, without those that no segment holds any more."""
        rows = self.removals(collection)
        left = np.setdiff1d(unpack_keys(self.removed(rows).values()), resolved)
        self._rows("DELETE FROM word_removals WHERE id = ANY($1)", rows)
        if len(left):
            self._insert_removed(collection, left)

    def _segment(self, segment: int) -> Segment:
        sql = "SELECT postings FROM word_pieces WHERE segment = $1 ORDER BY number"
        pieces = [unpack_piece(bytes(stored)) for (stored,) in self._rows(sql, segment)]
        return whole(unpack(self.headers([segment])[segment]), pieces)

    def _keys(self, segment: int) -> Keys:
        return unpack(self.headers([segment])[segment]).keys

    def _insert_segment(self, collection: int, segment: Segment) -> None:
        header = segment.header
        sql = self._insertion("word_segments", "collection", "texts", "postings", "header") + " RETURNING id"
        [(number,)] = self._rows(sql, collection, header.texts, header.size, pack(header), *self._owner.values())
        sql = self._insertion("word_pieces", "segment", "number", "postings")
        pieces = enumerate(segment.pieces())
        self._each(sql, [(number, at, piece, *self._owner.values()) for at, piece in pieces])

    def _insert_removed(self, collection: int, keys: Keys) -> None:
        sql = self._insertion("word_removals", "collection", "texts", "keys")
        self._rows(sql, collection, len(keys), pack_keys(keys), *self._owner.values())

    def _insertion(self, table: str, *columns: str) -> str:
        names = (*columns, *self._owner)
        places = ", ".join(f"${number}" for number in range(1, len(names) + 1))
        return f"INSERT INTO {table}({', '.join(names)}) VALUES ({places})"

    def _delete(self, segments: list[int]) -> None:
        self._rows("DELETE FROM word_pieces WHERE segment = ANY($1)", segments)
        self._rows("DELETE FROM word_segments WHERE id = ANY($1)", segments)

    def _blobs(self, sql: str, asked: Sequence[int]) -> dict[int, bytes]:
        found = {one: bytes(stored) for one, stored in self._rows(sql, list(asked))} if asked else {}
        return _complete(found, len(set(asked)))


def _complete(found: dict[int, bytes], asked: int) -> dict[int, bytes]:
    """Rows that were read, if they are as many as were asked for."""
    if len(found) < asked:
        raise StoreCorrupt("the keyword index is damaged: some rows are missing; run homing doctor")
    return found


def best_passing(
    question: Question, limit: int, named: Callable[[], Keys | None], passing: Callable[[Keys], Keys]
) -> tuple[Keys, Scores]:
    """The best texts that pass a broad filter, and what ties with the last of them.

    `passing` says which of some keys pass. Where of the best too few do, `named` gives the keys of all that do, in
    order; None where those are too many to read.
    """
    reach, allowed = limit, None
    while True:
        reach *= OVERFETCH
        keys, scores = question.best(reach)
        kept = np.isin(keys, passing(keys))
        if len(keys) < reach or kept.sum() > limit:
            return keys[kept], scores[kept]
        if reach == limit * OVERFETCH:
            allowed = named()
        if allowed is not None:
            return question.best(limit, allowed)


class Merger(Generic[P]):
    """Joins large segments beside the writers, in a thread that lives while there is something to join.

    `merge` joins some segments of a place (a collection, and whose it is), and says whether there may be more.
    """

    def __init__(self, merge: Callable[[P], bool]) -> None:
        self._merge = merge
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked: dict[P, None] = {}
        self._stopped = False

    def wake(self, place: P) -> None:
        """Look whether there is something to join."""
        with self._lock:
            self._asked[place] = None
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._run, name="homing-merge", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Finish what was begun, and begin nothing more."""
        with self._lock:
            self._stopped = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._stopped or not self._asked:
                    self._thread = None
                    return
                place = next(iter(self._asked))
                del self._asked[place]
            try:
                while not self._stopped and self._merge(place):
                    pass
            except HomingError as error:
                # Joining makes searches faster and nothing else; the next write asks for it again.
                log.info("large keyword segments were not joined: %s", error)
            except Exception:
                log.exception("joining keyword segments failed")
