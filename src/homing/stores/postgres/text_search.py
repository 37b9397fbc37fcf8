"""The records that share words with a query, ranked by BM25, computed by the server in one statement.

The index names the records that have a word; how often it stands there is found by bisection, and how many they are is
how rare it is. So both the candidates and the ranking are exact, and no statistics have to be kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from homing.database.postgres.driver import Connection
from homing.stores.filters import Filter
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.filtering import conditions
from homing.stores.postgres.slots import slots
from homing.text.tokens import query_terms

K1, B = 1.2, 0.75
"""BM25's customary constants, which are FTS5's too: how soon repetition stops counting, and how much length counts."""
UNIT = 1_000_000_000
"""Shares of the relevance are summed as whole billionths: in any order, equal texts get equal sums."""


@dataclass(frozen=True, slots=True)
class Relevant:
    """Rows of BM25 and the columns that were asked for, the most relevant first, and the mass of the query."""

    rows: list[tuple[Any, ...]]
    mass: float


def search(
    connection: Connection, collection: Collection, query: str, limit: int, asked: Filter, shown: str
) -> Relevant:
    """The `limit` most relevant records, if so many exist, by BM25 and then id: BM25, and the columns of `shown`."""
    terms = query_terms(query)
    if not terms or not collection.records:
        return Relevant([], 0.0)
    filtered, values = conditions(collection.id, asked, "f")
    joined = f"JOIN records f ON f.key = h.record{filtered}" if asked else ""
    rows = connection.execute(
        "WITH hits AS MATERIALIZED ("
        "SELECT w.record, w.length, a.slot, w.often FROM unnest(%s::bigint[]) AS a(slot) CROSS JOIN LATERAL ("
        "SELECT record, length, counts[width_bucket(a.slot, slots)]::float8 AS often FROM words "
        "WHERE slots @> ARRAY[a.slot] AND collection = %s AND user_id = %s) w), "
        f"rare AS (SELECT slot, {_idf('count(*)')} AS weight FROM hits GROUP BY slot), "
        f"best AS (SELECT h.record, {_bm25('h.length')} AS score FROM hits h JOIN rare USING (slot) {joined} "
        "GROUP BY h.record ORDER BY score DESC FETCH FIRST %s ROWS WITH TIES) "
        "SELECT known.terms, known.weight, found.* FROM (SELECT count(*) AS terms, sum(weight) AS weight FROM rare) "
        f"AS known LEFT JOIN (SELECT best.score::float8 / {UNIT} AS score, {shown} FROM best "
        "JOIN records r ON r.key = best.record ORDER BY best.score DESC, r.id LIMIT %s) AS found ON true "
        "ORDER BY found.score DESC, found.id",
        [
            _slots(collection, terms), collection.id, collection.user, collection.records,
            *_constants(collection), *values, limit, limit,
        ],
        binary=True,
        prepare=False,
    ).fetchall()  # fmt: skip
    known, weight = rows[0][:2]
    unknown = (len(terms) - known) * idf(collection, 0)
    return Relevant([row[2:] for row in rows if row[2] is not None], (weight or 0.0) + unknown)


def relevance(connection: Connection, collection: Collection, query: str, ids: Sequence[str]) -> dict[str, float]:
    """The BM25 of those records of these ids that share words with the query."""
    terms = query_terms(query)
    if not terms or not collection.records:
        return {}
    # A fifth of what a search costs: the other records that have a word are only counted.
    rows = connection.execute(
        f"WITH rare AS MATERIALIZED (SELECT a.slot, {_idf('n.texts')} AS weight FROM unnest(%s::bigint[]) AS a(slot) "
        "CROSS JOIN LATERAL (SELECT count(*) AS texts FROM words "
        "WHERE slots @> ARRAY[a.slot] AND collection = %s AND user_id = %s) n) "
        f"SELECT r.id, ({_bm25('w.length')})::float8 / {UNIT} FROM records r JOIN words w ON w.record = r.key "
        "CROSS JOIN rare CROSS JOIN LATERAL (SELECT width_bucket(rare.slot, w.slots) AS place) b "
        "CROSS JOIN LATERAL (SELECT w.counts[b.place]::float8 AS often WHERE w.slots[b.place] = rare.slot) h "
        "WHERE r.collection = %s AND r.user_id = %s AND r.id = ANY(%s) GROUP BY r.id",
        [
            collection.records, _slots(collection, terms), collection.id, collection.user,
            *_constants(collection), collection.id, collection.user, list(ids),
        ],
        binary=True,
        prepare=False,
    ).fetchall()  # fmt: skip
    return dict(rows)


def idf(collection: Collection, texts: int) -> float:
    """How much a word is worth that so many texts of a collection hold."""
    return math.log(1 + (max(collection.records - texts, 0) + 0.5) / (texts + 0.5))


def _idf(texts: str) -> str:
    """SQL for the same; its value is the number of records."""
    return f"ln(1 + (greatest(%s - {texts}, 0) + 0.5::float8) / ({texts} + 0.5::float8))"


def _bm25(length: str) -> str:
    """SQL for the relevance of a record; its values are the constants."""
    return f"sum((%s::float8 * rare.weight * h.often / (h.often + %s::float8 + %s::float8 * {length}))::bigint)"


def _constants(collection: Collection) -> list[float]:
    average = collection.words / collection.records or 1.0
    return [(K1 + 1) * UNIT, K1 * (1 - B), K1 * B / average]


def _slots(collection: Collection, terms: list[str]) -> list[int]:
    found: list[int] = slots(collection.id, terms).tolist()
    return found
