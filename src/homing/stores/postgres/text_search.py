"""The records that share words with a query, ranked by BM25, computed by the server in one statement.

The index names the candidates; in each the asked words are found by bisection, and how many candidates have a word is
how rare it is. So both the candidates and the ranking are exact, and no statistics have to be kept.
"""

from __future__ import annotations

from typing import Any

from homing.records import Match
from homing.stores.attributes import Filter
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.driver import Connection
from homing.stores.postgres.filtering import conditions
from homing.stores.postgres.matches import SHOWN, match
from homing.stores.postgres.slots import slots
from homing.text.tokens import query_terms

K1, B = 1.2, 0.75
"""BM25's customary constants, which are FTS5's too: how soon repetition stops counting, and how much length counts."""
UNIT = 1_000_000_000
"""Shares of the relevance are summed as whole billionths: in any order, equal texts get equal sums."""


def search(connection: Connection, collection: Collection, query: str, limit: int, asked: Filter) -> list[Match]:
    """The `limit` most relevant records, if so many exist, by relevance descending and then id."""
    terms = query_terms(query)
    if not terms or not collection.words:
        return []
    numbers = slots(collection.id, terms).tolist()
    average = collection.words / collection.records
    filtered, values = conditions(collection.id, asked, "f.attributes")
    among = f"JOIN records f ON f.key = h.record{filtered}" if asked else ""
    rows = connection.execute(
        "WITH hits AS MATERIALIZED ("
        "SELECT w.record, w.length, a.slot, w.counts[p.place]::float8 AS often FROM words w "
        "CROSS JOIN unnest(%s::bigint[]) AS a(slot) CROSS JOIN LATERAL width_bucket(a.slot, w.slots) AS p(place) "
        "WHERE w.slots && %s::bigint[] AND w.collection = %s AND w.user_id = %s AND w.slots[p.place] = a.slot), "
        "rare AS (SELECT slot, ln(1 + (greatest(%s, count(*)) - count(*) + 0.5) / (count(*) + 0.5)) AS weight "
        "FROM hits GROUP BY slot), "
        "best AS (SELECT h.record, sum(("
        f"rare.weight * h.often * {K1 + 1} / (h.often + {K1} * ({1 - B} + {B} * h.length / %s)) * {UNIT})::bigint) "
        f"AS score FROM hits h JOIN rare USING (slot) {among} GROUP BY h.record "
        "ORDER BY score DESC FETCH FIRST %s ROWS WITH TIES) "
        f"SELECT {SHOWN}, best.score::float8 / {UNIT} FROM best JOIN records r ON r.key = best.record "
        "ORDER BY best.score DESC, r.id LIMIT %s",
        _values(collection, numbers, average, values, limit),
        binary=True,
        prepare=False,
    ).fetchall()
    return [match(collection.name, row, score=row[4]) for row in rows]


def _values(collection: Collection, numbers: list[int], average: float, filtered: list[Any], limit: int) -> list[Any]:
    own = [collection.id, collection.user]
    return [numbers, numbers, *own, collection.records, average, *filtered, limit, limit]
