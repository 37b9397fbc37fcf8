"""The records that share words with a query, ranked by BM25, computed by the server in one statement.

The index names the records that have a word; how often it stands there is found by bisection, and how many they are is
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
    filtered, values = conditions(collection.id, asked, "f.attributes")
    among = f"JOIN records f ON f.key = h.record{filtered}" if asked else ""
    rows = connection.execute(
        "WITH hits AS MATERIALIZED ("
        "SELECT w.record, w.length, a.slot, w.often FROM unnest(%s::bigint[]) AS a(slot) CROSS JOIN LATERAL ("
        "SELECT record, length, counts[width_bucket(a.slot, slots)]::float8 AS often FROM words "
        "WHERE slots @> ARRAY[a.slot] AND collection = %s AND user_id = %s) w), "
        "rare AS (SELECT slot, ln(1 + (greatest(%s - count(*), 0) + 0.5::float8) / (count(*) + 0.5::float8)) AS weight "
        "FROM hits GROUP BY slot), "
        "best AS (SELECT h.record, sum((%s::float8 * rare.weight * h.often "
        "/ (h.often + %s::float8 + %s::float8 * h.length))::bigint) "
        f"AS score FROM hits h JOIN rare USING (slot) {among} GROUP BY h.record "
        "ORDER BY score DESC FETCH FIRST %s ROWS WITH TIES) "
        f"SELECT {SHOWN}, best.score::float8 / {UNIT} FROM best JOIN records r ON r.key = best.record "
        "ORDER BY best.score DESC, r.id LIMIT %s",
        _values(collection, numbers, values, limit),
        binary=True,
        prepare=False,
    ).fetchall()
    return [match(collection.name, row, score=row[4]) for row in rows]


def _values(collection: Collection, numbers: list[int], filtered: list[Any], limit: int) -> list[Any]:
    average = collection.words / collection.records
    constants = [float((K1 + 1) * UNIT), K1 * (1 - B), K1 * B / average]
    return [numbers, collection.id, collection.user, collection.records, *constants, *filtered, limit, limit]
