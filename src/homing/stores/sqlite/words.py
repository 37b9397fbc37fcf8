"""The keyword index in the file: segments of postings as rows, written in the transaction of their texts.

What segments are and how texts are scored is `homing.stores.postings`. Small segments are joined by whoever writes, at
once; large ones by a thread beside, which works on a snapshot and holds the file for the moment of the exchange.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from functools import partial

import apsw
import numpy as np

from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.database import rows
from homing.errors import HomingError
from homing.stores.filters import Filter
from homing.stores.postings.index import Index, Question, Scores, View, among, due
from homing.stores.postings.segment import (
    MAX_TEXTS,
    Keys,
    Segment,
    build,
    join,
    pack,
    pack_keys,
    unpack,
    unpack_keys,
    unpack_piece,
    whole,
)
from homing.stores.sqlite import reading
from homing.stores.sqlite.reading import Collection, Estimates
from homing.stores.store import Worded, Words
from homing.text.tokens import query_terms

log = logging.getLogger(__name__)

AT_ONCE = 200_000
"""Postings that are joined inside a write, at most: some hundredths of a second."""
PURGED = 50_000
"""Postings that are written anew when texts are deleted, at most."""
REMOVALS = 32
"""Rows of removed keys before they are written as one."""
NAMED = 20_000
"""Records of a filter up to which all of them are read, and the search is among those."""
OVERFETCH = 4
"""How many times as many records are looked at, where a filter may leave some out."""


class SegmentRows:
    """The rows of the index as one connection sees them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def segments(self, collection: int) -> list[tuple[int, int, int]]:
        """Id, texts and postings of every segment."""
        sql = "SELECT id, texts, postings FROM word_segments WHERE collection = ? ORDER BY id"
        return [(one, texts, postings) for one, texts, postings in rows(self._connection, sql, (collection,))]

    def removals(self, collection: int) -> list[int]:
        """The ids of the rows of removed keys."""
        sql = "SELECT id FROM word_removals WHERE collection = ? ORDER BY id"
        return [one for (one,) in rows(self._connection, sql, (collection,))]

    def header(self, segment: int) -> bytes:
        """The header of a segment."""
        return self._blob("SELECT header FROM word_segments WHERE id = ?", segment)

    def piece(self, segment: int, number: int) -> bytes:
        """A piece of its postings."""
        return self._blob("SELECT postings FROM word_pieces WHERE segment = ? AND number = ?", segment, number)

    def removed(self, removal: int) -> bytes:
        """The keys of texts that were removed."""
        return self._blob("SELECT keys FROM word_removals WHERE id = ?", removal)

    def removed_count(self, collection: int) -> int:
        """How many texts were removed that segments still hold."""
        sql = "SELECT coalesce(sum(texts), 0) FROM word_removals WHERE collection = ?"
        [(count,)] = rows(self._connection, sql, (collection,))
        return int(count)

    def removed_keys(self, collection: int) -> Keys:
        """The keys of all texts that were removed and that segments still hold."""
        return unpack_keys(self.removed(one) for one in self.removals(collection))

    def segment(self, segment: int) -> Segment:
        """A whole segment."""
        sql = "SELECT postings FROM word_pieces WHERE segment = ? ORDER BY number"
        pieces = [unpack_piece(stored) for (stored,) in rows(self._connection, sql, (segment,))]
        return whole(unpack(self.header(segment)), pieces)

    def _blob(self, sql: str, *bindings: int) -> bytes:
        [(found,)] = rows(self._connection, sql, bindings)
        return bytes(found)


def add(connection: apsw.Connection, collection: int, texts: Sequence[tuple[int, Sequence[str]]]) -> bool:
    """Write the words of records, given as key and tokens, by ascending key; whether `Merger` has something to do."""
    for start in range(0, len(texts), MAX_TEXTS):
        _insert(connection, collection, build(texts[start : start + MAX_TEXTS]))
    return _tidy(connection, collection)


def remove(connection: apsw.Connection, collection: int, keys: Sequence[int]) -> None:
    """Take records out."""
    _insert_removed(connection, collection, np.array(keys, np.int64))
    _tidy(connection, collection)


def purge(connection: apsw.Connection, collection: int) -> None:
    """Write segments that hold removed texts anew, where that is quickly done."""
    found = SegmentRows(connection)
    removed = found.removed_keys(collection)
    left = PURGED
    for one, _, postings in found.segments(collection):
        if postings <= left and among(unpack(found.header(one)).keys, removed).any():
            left -= postings
            part = found.segment(one)
            _exchange(connection, collection, [one], [part], join([part], removed), removed)


def drop_some(connection: apsw.Connection, collection: int) -> bool:
    """Remove a part of what a collection has in the index; whether there was anything."""
    found = [one for one, _, _ in SegmentRows(connection).segments(collection)]
    _delete(connection, found[:1])
    connection.execute("DELETE FROM word_removals WHERE collection = ?", (collection,))
    return bool(found)


def search(
    connection: apsw.Connection,
    collection: Collection,
    query: str,
    limit: int,
    asked: Filter,
    estimates: Estimates,
    index: Index,
) -> Words:
    """The `limit` most relevant, if so many exist, the best first, ties by id, and what the words are worth."""
    question, view = _question(connection, collection, query, index)
    keys, scores = _best(connection, collection, question, limit, asked, estimates)
    ids: dict[int, str] = dict(
        rows(
            connection,
            "SELECT key, id FROM records WHERE key IN (SELECT value FROM json_each(?))",
            (json.dumps(keys.tolist()),),
        )
    )
    best = sorted((-score, ids[key]) for key, score in zip(keys.tolist(), scores.tolist(), strict=True))[:limit]
    return Words(tuple([Worded(name, -score) for score, name in best]), question.mass, view.idf(1), view.texts)


def measure(
    connection: apsw.Connection, collection: Collection, query: str, keys: Sequence[int], index: Index
) -> dict[int, float]:
    """The BM25 of those of these records that share a word with the query, by key."""
    if not keys:
        return {}
    question, _ = _question(connection, collection, query, index)
    scores = question.measure(np.array(keys, np.int64))
    return {key: score for key, score in zip(keys, scores.tolist(), strict=True) if score > 0}


def contents(connection: apsw.Connection, collection: int) -> Iterator[tuple[int, dict[int, int]]]:
    """What the index holds of every record: its key, and how often it has each term."""
    found = SegmentRows(connection)
    removed = found.removed_keys(collection)
    for segment, _, _ in found.segments(collection):
        yield from join([found.segment(segment)], removed).contents()


class Merger:
    """Joins large segments beside the writers, in a thread that lives while there is something to join."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked = False
        self._stopped = False

    def wake(self) -> None:
        """Look whether there is something to join."""
        with self._lock:
            self._asked = True
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
                self._asked = False
            try:
                while not self._stopped and self._merge_one():
                    pass
            except HomingError as error:
                # Joining makes searches faster and nothing else; the next write asks for it again.
                log.info("large keyword segments were not joined: %s", error)
            except Exception:
                log.exception("joining keyword segments failed")

    def _merge_one(self) -> bool:
        with self._database.writing():
            # Who woke this may be in the middle of a transaction; what is due is seen when that is over.
            pass
        with self._database.reading() as connection:
            found = SegmentRows(connection)
            names = rows(connection, "SELECT DISTINCT collection FROM word_segments")
            for (collection,) in names:
                segments = found.segments(collection)
                chosen = due([(one, texts) for one, texts, _ in segments]) or _wasted(found, collection, segments)
                if chosen:
                    parts = [found.segment(one) for one in chosen]
                    removed = found.removed_keys(collection)
                    break
            else:
                return False
        joined = join(parts, removed)
        with self._database.writing() as connection:
            there = {one for one, _, _ in SegmentRows(connection).segments(collection)}
            # Whoever joined or dropped some of them meanwhile was faster.
            if there.issuperset(chosen):
                _exchange(connection, collection, chosen, parts, joined, removed)
        return True


def _question(connection: apsw.Connection, collection: Collection, query: str, index: Index) -> tuple[Question, View]:
    found = SegmentRows(connection)
    view = index.view(collection.id, collection.word_segments, collection.word_removals, found)
    terms = query_terms(query)
    log.debug("%d terms in %d segments of collection %d", len(terms), len(view.parts), collection.id)
    return Question(view, terms, partial(index.piece, found)), view


def _best(
    connection: apsw.Connection,
    collection: Collection,
    question: Question,
    limit: int,
    asked: Filter,
    estimates: Estimates,
) -> tuple[Keys, Scores]:
    """The best records that pass a filter, and what ties with the last of them."""
    if not asked:
        return question.best(limit)
    estimate = estimates.of(connection, collection.id, collection.records, asked)
    if estimate.pair is not None and estimate.count <= NAMED:
        return question.best(limit, reading.matching(connection, collection.id, asked, estimate.pair))
    reach = limit
    while True:
        reach *= OVERFETCH
        keys, scores = question.best(reach)
        passing = np.isin(keys, reading.passing(connection, collection.id, asked, keys))
        if len(keys) < reach or passing.sum() > limit:
            return keys[passing], scores[passing]


def _insert(connection: apsw.Connection, collection: int, segment: Segment) -> None:
    connection.execute(
        "INSERT INTO word_segments(collection, texts, postings, header) VALUES (?, ?, ?, ?)",
        (collection, segment.header.texts, segment.header.size, pack(segment.header)),
    )
    number = connection.last_insert_rowid()
    connection.executemany(
        "INSERT INTO word_pieces(segment, number, postings) VALUES (?, ?, ?)",
        [(number, at, piece) for at, piece in enumerate(segment.pieces())],
    )


def _insert_removed(connection: apsw.Connection, collection: int, keys: Keys) -> None:
    connection.execute(
        "INSERT INTO word_removals(collection, texts, keys) VALUES (?, ?, ?)", (collection, len(keys), pack_keys(keys))
    )


def _delete(connection: apsw.Connection, segments: Sequence[int]) -> None:
    connection.executemany("DELETE FROM word_pieces WHERE segment = ?", [(one,) for one in segments])
    connection.executemany("DELETE FROM word_segments WHERE id = ?", [(one,) for one in segments])


def _tidy(connection: apsw.Connection, collection: int) -> bool:
    """Join what is small and due; whether something large is due as well."""
    found = SegmentRows(connection)
    while True:
        segments = found.segments(collection)
        sizes = {one: postings for one, _, postings in segments}
        chosen = due([(one, texts) for one, texts, _ in segments]) or _wasted(found, collection, segments)
        if not chosen or sum(sizes[one] for one in chosen) > AT_ONCE:
            break
        parts, removed = [found.segment(one) for one in chosen], found.removed_keys(collection)
        _exchange(connection, collection, chosen, parts, join(parts, removed), removed)
    if len(found.removals(collection)) > REMOVALS:
        removed = found.removed_keys(collection)
        connection.execute("DELETE FROM word_removals WHERE collection = ?", (collection,))
        _insert_removed(connection, collection, removed)
    return bool(chosen)


def _wasted(found: SegmentRows, collection: int, segments: Sequence[tuple[int, int, int]]) -> list[int]:
    """The first segment of which half was removed, where a quarter of all was."""
    count = found.removed_count(collection)
    if not count or count * 4 < sum(texts for _, texts, _ in segments):
        return []
    removed = found.removed_keys(collection)
    for one, texts, _ in segments:
        if 2 * int(among(unpack(found.header(one)).keys, removed).sum()) >= texts:
            return [one]
    return []


def _exchange(
    connection: apsw.Connection,
    collection: int,
    chosen: Sequence[int],
    parts: Sequence[Segment],
    joined: Segment,
    removed: Keys,
) -> None:
    """Put a joined segment in the place of its parts. What was removed since they were read stays removed."""
    _delete(connection, chosen)
    if joined.header.texts:
        _insert(connection, collection, joined)
    resolved = np.intersect1d(removed, np.concatenate([one.header.keys for one in parts]))
    if len(resolved):
        left = np.setdiff1d(SegmentRows(connection).removed_keys(collection), resolved)
        connection.execute("DELETE FROM word_removals WHERE collection = ?", (collection,))
        if len(left):
            _insert_removed(connection, collection, left)
