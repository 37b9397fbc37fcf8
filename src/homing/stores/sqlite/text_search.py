"""The records that share words with a query, ranked by BM25.

Scoring a text costs about a microsecond, so in a large collection a word that half of the texts have would cost a
second and say nothing. There, rare words lead: texts with a rare word and a frequent one come first, then texts with a
rare word, then the newest of those with frequent words only. Up to `BUDGET` records, and for queries whose words are
all rare, there is one step: plain BM25 over everything.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence

import apsw

from homing.database import Row
from homing.database.sqlite.database import rows
from homing.stores.filters import Filter
from homing.stores.sqlite import filtering, keywords
from homing.stores.sqlite.estimates import Estimates
from homing.stores.sqlite.writing import Collection
from homing.stores.store import Worded, Words
from homing.text.tokens import query_terms

log = logging.getLogger(__name__)

BUDGET = 20_000
"""Texts that one step scores, at most."""
NAMED = 4_000
"""Records of a filter up to which they are named, which makes asking whether a text passes four times cheaper."""

K1 = 1.2
"""FTS5's own: a term brings at most `K1 + 1` times its idf."""
LEAST_IDF = 1e-6
"""What FTS5 makes of the idf of a term that most texts hold."""


def search(
    connection: apsw.Connection, collection: Collection, query: str, limit: int, asked: Filter, estimates: Estimates
) -> Words:
    """The `limit` most relevant, if so many exist, the best first, ties by id, and what the words are worth.

    BM25 is counted such that a term brings at most its idf.
    """
    terms = query_terms(query)
    holders = _holders(connection, collection, terms)
    found: dict[str, float] = {}
    if terms:
        index = _Index(connection, collection, asked, estimates)
        for expression in index.steps(terms, holders):
            # What an earlier step found stays ahead of what a later one adds.
            highest = min(found.values(), default=math.inf)
            for name, score in index.best(expression, limit + len(found)):
                found.setdefault(name, min(score, highest))
            if len(found) >= limit:
                break
    best = sorted(found.items(), key=lambda one: (-one[1], one[0]))[:limit]
    return Words(
        tuple(Worded(name, score / (K1 + 1)) for name, score in best),
        sum(_idf(collection.records, holders.get(term, 0)) for term in terms),
        _idf(collection.records, 1),
        collection.records,
    )


def measure(connection: apsw.Connection, collection: Collection, query: str, keys: Sequence[int]) -> dict[int, float]:
    """The BM25 of those of these records that share a word with the query, by key."""
    terms = query_terms(query)
    if not terms or not keys:
        return {}
    table = keywords.table(collection.id)
    found = rows(
        connection,
        f"SELECT rowid, -bm25({table}) FROM {table} WHERE {table} MATCH ? AND "
        "+rowid IN (SELECT value FROM json_each(?))",
        (_any(terms), json.dumps(list(keys))),
    )
    return {key: score / (K1 + 1) for key, score in found}


def _holders(connection: apsw.Connection, collection: Collection, terms: Sequence[str]) -> dict[str, int]:
    """How many texts hold each of these terms, of those that any holds."""
    if not terms:
        return {}
    return dict(
        rows(
            connection,
            f"SELECT term, doc FROM {keywords.terms_table(collection.id)} "
            "WHERE term IN (SELECT value FROM json_each(?))",
            (json.dumps(terms),),
        )
    )


def _idf(texts: int, holders: int) -> float:
    return max(LEAST_IDF, math.log(max(texts - holders + 0.5, 0.5) / (holders + 0.5)))


class _Index:
    """The words of one collection, as one search sees them."""

    def __init__(
        self, connection: apsw.Connection, collection: Collection, asked: Filter, estimates: Estimates
    ) -> None:
        self._connection = connection
        self._size = collection.records
        self._table = keywords.table(collection.id)
        start = keywords.first_key(collection.id)
        self._within = f"{self._table} MATCH ? AND rowid >= {start} AND rowid < {start + keywords.RANGE}"
        # The plus keeps SQLite from running the whole query once for every record that passes.
        record = f"+{self._table}.rowid"
        estimate = estimates.of(connection, collection.id, collection.records, asked)
        if estimate.pair is not None and estimate.count <= NAMED:
            self._passes, self._bindings = filtering.among(collection.id, asked, estimate.pair, record)
        else:
            self._passes, self._bindings = filtering.conditions(collection.id, asked, record)

    def steps(self, terms: Sequence[str], holders: Mapping[str, int]) -> Iterator[str]:
        """The expressions to try, one after the other, until there are enough matches."""
        rare, frequent = self._by_frequency(terms, holders)
        if rare and frequent:
            yield f"({_any(rare)}) AND ({_any(frequent)})"
        if rare:
            yield _any(rare)
        if len(frequent) > 1:
            yield _all(frequent)
        if frequent:
            yield _any(frequent)

    def best(self, expression: str, limit: int) -> list[Row]:
        """The best (id, score) for an expression; which of those that tie at the end belong to it is decided by ids."""
        statement = (
            f"WITH scored AS MATERIALIZED (SELECT rowid AS key, -bm25({self._table}) AS score FROM {self._table} "
            f"WHERE {self._within}{self._passes} ORDER BY rowid DESC LIMIT ?) "
            "SELECT r.id, s.score FROM scored s JOIN records r ON r.key = s.key WHERE s.score >= "
            "(SELECT min(score) FROM (SELECT score FROM scored ORDER BY score DESC LIMIT ?)) "
            "ORDER BY s.score DESC, r.id LIMIT ?"
        )
        log.debug("%s", statement, extra={"sql": statement})
        return rows(self._connection, statement, (expression, *self._bindings, max(BUDGET, limit), limit, limit))

    def _by_frequency(self, terms: Sequence[str], holders: Mapping[str, int]) -> tuple[list[str], list[str]]:
        """The rare terms, which together occur in no more texts than may be scored, and the others."""
        if self._size <= BUDGET:
            return list(terms), []
        rare: list[str] = []
        scored = 0
        for term in sorted(terms, key=lambda term: holders.get(term, 0)):
            scored += holders.get(term, 0)
            if scored <= BUDGET:
                rare.append(term)
        return rare, [term for term in terms if term not in rare]


def _any(terms: Sequence[str]) -> str:
    # Terms hold no quote (see homing.text.tokens); quoted, each is a word and never an operator.
    return " OR ".join(f'"{term}"' for term in terms)


def _all(terms: Sequence[str]) -> str:
    return " AND ".join(f'"{term}"' for term in terms)
