"""The keyword index in the file: what `homing.stores.postings` keeps, asked and joined inside SQLite's transactions."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from weakref import proxy

import apsw
import numpy as np

from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.database import SqliteTransaction, rows
from homing.stores.filters import Filter
from homing.stores.postings import spelling
from homing.stores.postings.index import Index, Scores, View
from homing.stores.postings.question import Question
from homing.stores.postings.segment import Keys
from homing.stores.postings.tables import NAMED, RARE, WordTables, best_passing
from homing.stores.sqlite import reading
from homing.stores.sqlite.reading import Collection, Estimates
from homing.stores.store import Worded, Words

log = logging.getLogger(__name__)


def tables(connection: apsw.Connection) -> WordTables:
    """The rows of the index as one connection sees them."""
    return WordTables(SqliteTransaction(connection))


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
    question, corrected, view = _question(connection, collection, query, index)
    keys, scores = _best(connection, collection, question, limit, asked, estimates)
    ids = index.ids(keys.tolist(), lambda missing: _ids(connection, missing))
    best = sorted((-score, ids[key]) for key, score in zip(keys.tolist(), scores.tolist(), strict=True))[:limit]
    found = tuple([Worded(name, -score) for score, name in best])
    return Words(found, question.mass, view.idf(1), view.texts, corrected)


def _ids(connection: apsw.Connection, keys: list[int]) -> list[tuple[int, str]]:
    sql = "SELECT key, id FROM records WHERE key IN (SELECT value FROM json_each(?))"
    return [(key, name) for key, name in rows(connection, sql, (json.dumps(keys),))]


def measure(
    connection: apsw.Connection, collection: Collection, query: str, keys: Sequence[int], index: Index
) -> dict[int, float]:
    """The BM25 of those of these records that share a word with the query, by key."""
    if not keys:
        return {}
    question, _, _ = _question(connection, collection, query, index)
    scores = question.measure(np.array(keys, np.int64))
    return {key: score for key, score in zip(keys, scores.tolist(), strict=True) if score > 0}


def merge(database: SqliteDatabase, collection: int) -> bool:
    """Join segments of a collection that are due: on a snapshot, holding the file for the moment of the exchange."""
    with database.writing():
        # Who woke this may be in the middle of a transaction; what is due is seen when that is over.
        pass
    with database.reading() as connection:
        found = tables(connection)
        chosen = found.due(collection)
        if not chosen:
            return False
        work = found.read(collection, chosen)
    joined = work.joined()
    with database.writing() as connection:
        tables(connection).exchange(work, joined)
    return True


def _question(
    connection: apsw.Connection, collection: Collection, query: str, index: Index
) -> tuple[Question, Mapping[str, str], View]:
    if query in collection.question:
        # Asked by words a moment ago; now of what was found by meaning.
        return collection.question[query]
    # The question is held beside the connection, which it must not keep in memory.
    found = tables(proxy(connection))
    view = index.view(collection.id, collection.word_segments, collection.word_removals, found)
    question, corrected = spelling.put(view, query, partial(index.lists, found))
    log.debug("%d terms in %d segments of collection %d", len(question.holders), len(view.parts), collection.id)
    collection.question.clear()
    collection.question[query] = question, corrected, view
    return collection.question[query]


def _best(
    connection: apsw.Connection,
    collection: Collection,
    question: Question,
    limit: int,
    asked: Filter,
    estimates: Estimates,
) -> tuple[Keys, Scores]:
    if not asked:
        return question.best(limit)
    estimate = estimates.of(connection, collection.id, collection.records, asked)

    def named() -> Keys | None:
        few = estimate.pair is not None and estimate.count <= NAMED
        return reading.matching(connection, collection, asked, estimate.pair) if few else None

    if estimate.count * RARE <= estimate.of and (rare := named()) is not None:
        return question.best(limit, rare)
    return best_passing(question, limit, named, partial(reading.passing, connection, collection.id, asked))
