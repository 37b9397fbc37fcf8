"""The records that share words with a query, ranked by BM25.

Scoring a text costs about a microsecond, so in a large collection a word that half of the texts have would cost a
second and say nothing. There, rare words lead: texts with a rare word and a frequent one come first, then texts with a
rare word, then the newest of those with frequent words only. Up to `BUDGET` records, and for queries whose words are
all rare, there is one step: plain BM25 over everything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw

from homing.database.sqlite.rows import Row, rows
from homing.stores.filters import Filter
from homing.stores.sqlite import filtering, keywords
from homing.stores.sqlite.writing import Collection
from homing.text.tokens import query_terms

BUDGET = 20_000
"""Texts that one step scores, at most."""
NAMED = 4_000
"""Records of a filter up to which they are named, which makes asking whether a text passes four times cheaper."""


K1 = 1.2
"""FTS5's own: a term brings at most `K1 + 1` times its idf."""
LEAST_IDF = 1e-6
"""What FTS5 makes of the idf of a term that most texts hold."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the words of a query are worth; see `homing.stores.store.Words`."""

    mass: float
    rarest: float


def search(
    connection: apsw.Connection, collection: Collection, query: str, limit: int, asked: Filter
) -> list[tuple[float, int]]:
    """At least `limit` of the most relevant as (-BM25, key), if so many exist, the best first; more where the last tie.

    BM25 is counted such that a term brings at most its idf.
    """
    terms = query_terms(query)
    if not terms:
        return []
    index = _Index(connection, collection, asked)
    found: dict[int, float] = {}
    for expression in index.steps(terms):
        # What an earlier step found stays ahead of what a later one adds.
        highest = min(found.values(), default=float("inf"))
        for record, score in index.best(expression, limit + len(found)):
            found.setdefault(record, min(score, highest))
        if len(found) >= limit:
            break
    return sorted((-score / (K1 + 1), record) for record, score in found.items())


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


def weights(connection: apsw.Connection, collection: Collection, query: str) -> Weights:
    """What the words of a query are worth in a collection."""
    terms = query_terms(query)
    held: dict[str, int] = dict(
        rows(
            connection,
            f"SELECT term, doc FROM {keywords.vocabulary(connection, collection.id)} "
            "WHERE term IN (SELECT value FROM json_each(?))",
            (json.dumps(terms),),
        )
    )
    return Weights(sum(_idf(collection.records, held.get(term, 0)) for term in terms), _idf(collection.records, 1))


def _idf(texts: int, holders: int) -> float:
    return max(LEAST_IDF, math.log(max(texts - holders + 0.5, 0.5) / (holders + 0.5)))


class _Index:
    """The words of one collection, as one search sees them."""

    def __init__(self, connection: apsw.Connection, collection: Collection, asked: Filter) -> None:
        self._connection = connection
        self._size = collection.records
        self._table = keywords.table(collection.id)
        start = keywords.first_key(collection.id)
        self._within = f"{self._table} MATCH ? AND rowid >= {start} AND rowid < {start + keywords.RANGE}"
        self._passes, self._bindings = self._filter(collection.id, asked)

    def steps(self, terms: Sequence[str]) -> Iterator[str]:
        """The expressions to try, one after the other, until there are enough matches."""
        rare, frequent = self._by_frequency(terms)
        if rare and frequent:
            yield f"({_any(rare)}) AND ({_any(frequent)})"
        if rare:
            yield _any(rare)
        if len(frequent) > 1:
            yield _all(frequent)
        if frequent:
            yield _any(frequent)

    def best(self, expression: str, limit: int) -> list[Row]:
        """The best (record, score) for an expression, and all that tie with the last."""
        reach = limit + 32
        while True:
            found = rows(
                self._connection,
                f"SELECT rowid, score FROM (SELECT rowid, -bm25({self._table}) AS score FROM {self._table} "
                f"WHERE {self._within}{self._passes} ORDER BY rowid DESC LIMIT ?) ORDER BY score DESC LIMIT ?",
                (expression, *self._bindings, max(BUDGET, limit), reach),
            )
            if len(found) < reach or found[-1][1] < found[limit - 1][1]:
                return found
            # The last match ties with rows that were cut off: which of them belong to the answer is decided by ids.
            reach *= 8

    def _filter(self, collection: int, asked: Filter) -> tuple[str, list[filtering.Binding]]:
        # The plus keeps SQLite from running the whole query once for every record that passes.
        if not filtering.is_selective(self._connection, collection, asked, NAMED):
            return filtering.conditions(collection, asked, f"+{self._table}.rowid")
        named = filtering.matching(self._connection, collection, asked)
        return " AND +rowid IN (SELECT value FROM json_each(?))", [json.dumps(named.tolist())]

    def _by_frequency(self, terms: Sequence[str]) -> tuple[list[str], list[str]]:
        """The rare terms, which together occur in no more texts than may be scored, and the others."""
        if self._size <= BUDGET:
            return list(terms), []
        frequencies = {term: self._frequency(term) for term in terms}
        rare: list[str] = []
        scored = 0
        for term in sorted(terms, key=lambda term: frequencies[term]):
            scored += frequencies[term]
            if scored <= BUDGET:
                rare.append(term)
        return rare, [term for term in terms if term not in rare]

    def _frequency(self, term: str) -> int:
        [(count,)] = rows(
            self._connection,
            f"SELECT count(*) FROM (SELECT 1 FROM {self._table} WHERE {self._within} LIMIT {BUDGET + 1})",
            (_any([term]),),
        )
        return int(count)


def _any(terms: Sequence[str]) -> str:
    # Terms hold no quote (see homing.text.tokens); quoted, each is a word and never an operator.
    return " OR ".join(f'"{term}"' for term in terms)


def _all(terms: Sequence[str]) -> str:
    return " AND ".join(f'"{term}"' for term in terms)
