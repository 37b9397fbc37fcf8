"""The nearest records: by the index where there are many, compared one by one where there are few.

The index holds vectors in half precision, which halves it and makes it faster at the same recall; what it finds is
compared again exactly. It goes on looking while a filter throws away what it found, up to a bound. Where it comes back
with fewer than were asked for, or where the last places tie, everything is compared: an answer is never short of
records that exist.
"""

from __future__ import annotations

import math
from typing import Any

from homing.records import Match
from homing.stores.attributes import Filter
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.driver import Connection
from homing.stores.postgres.filtering import conditions
from homing.stores.postgres.matches import SHOWN, match
from homing.stores.postgres.schema import vector_table
from homing.vectors import Vector

COMPARED = 30
"""Vectors that can be compared one by one in the time that the index takes to look at one."""
COMPARED_FILTERED = 8
"""The same where a filter names them: each is fetched by its key."""
EF_SEARCH = 250
"""How many of the nearest the index keeps in view while it looks.

Recall@10 of questions among 100,000 sentences of other subjects, embedded by the bundled model, in the graph of
indexing.py: 0.92 at 60, 0.977 at 200, 0.985 at 300 (in pgvector's default graph: 0.87, 0.955, 0.97). Questions that
are like the sentences reach that at 40.
"""
WIDEST_INDEXED = 4_000
"""Dimensions up to which pgvector can index vectors in half precision."""


class Moved(Exception):
    """The collection is no longer what it was when it was looked up; look again."""


def search(connection: Connection, collection: Collection, query: Vector, limit: int, asked: Filter) -> list[Match]:
    """The nearest `limit` records, if so many exist, by distance and then id."""
    if indexable(collection, limit) and not (asked and _few(connection, collection, asked)):
        found = _by_index(connection, collection, query, limit, asked)
        if found is not None:
            return found
    return _one_by_one(connection, collection, query, limit, asked)


def indexable(collection: Collection, limit: int) -> bool:
    """Whether the index is the faster way: it is shared by all collections of a model, and passes by the others'."""
    looked_at = max(EF_SEARCH, _fetched(limit)) / max(collection.share, 1e-6)
    return collection.indexed and looked_at * COMPARED < collection.embedded


def _few(connection: Connection, collection: Collection, asked: Filter) -> bool:
    """Whether a filter lets so few through that comparing them is faster than passing by all others in the index."""
    most = math.isqrt(COMPARED_FILTERED * EF_SEARCH * collection.embedded)
    filtered, values = conditions(collection.id, asked, "f.attributes")
    row = connection.execute(
        "SELECT count(*) FROM (SELECT FROM records f WHERE f.collection = %s AND f.user_id = %s"
        f"{filtered} LIMIT %s) named",
        [collection.id, collection.user, *values, most],
        prepare=False,
    ).fetchone()
    return row is not None and row[0] < most


def _fetched(limit: int) -> int:
    # More than asked for: half precision may have swapped neighbours.
    return limit + max(10, limit // 4)


def _by_index(
    connection: Connection, collection: Collection, query: Vector, limit: int, asked: Filter
) -> list[Match] | None:
    half = f"halfvec({collection.dimensions})"
    fetched = _fetched(limit)
    filtered, values = conditions(collection.id, asked, "f.attributes")
    joined = "JOIN records f ON f.key = v.record" if asked else ""
    rows = connection.execute(
        f"WITH near AS MATERIALIZED (SELECT v.record, v.embedding <#> %s AS score FROM {_table(collection)} v {joined} "
        f"WHERE v.collection = %s AND v.user_id = %s{filtered} ORDER BY v.embedding::{half} <#> %s::{half} LIMIT %s) "
        f"SELECT {SHOWN}, n.score, (SELECT max(score) FROM near), (SELECT count(*) FROM near), {_CURRENT} "
        "FROM (SELECT record, score FROM near ORDER BY score FETCH FIRST %s ROWS WITH TIES) n "
        "JOIN records r ON r.key = n.record ORDER BY n.score, r.id LIMIT %s",
        [query, collection.id, collection.user, *values, query, fetched, *_identity(collection), limit, limit],
        binary=True,
        # A filter is planned for its own values: whether it is rare decides how to look.
        prepare=False if asked else None,
    ).fetchall()
    if not rows:
        return None
    _check_current(rows[0][-1])
    *_, last, count, _ = rows[-1]
    if count < fetched or (len(rows) == limit and rows[-1][4] == last):
        return None
    return _matches(collection, rows)


def _one_by_one(
    connection: Connection, collection: Collection, query: Vector, limit: int, asked: Filter
) -> list[Match]:
    filtered, values = conditions(collection.id, asked, "f.attributes")
    joined = "JOIN records f ON f.key = v.record" if asked else ""
    rows = connection.execute(
        f"SELECT {SHOWN}, n.score, {_CURRENT} FROM ("
        f"SELECT v.record, v.embedding <#> %s AS score FROM {_table(collection)} v {joined} "
        f"WHERE v.collection = %s AND v.user_id = %s{filtered} ORDER BY score FETCH FIRST %s ROWS WITH TIES"
        ") n JOIN records r ON r.key = n.record ORDER BY n.score, r.id LIMIT %s",
        [*_identity(collection), query, collection.id, collection.user, *values, limit, limit],
        binary=True,
        prepare=False if asked else None,
    ).fetchall()
    if rows:
        _check_current(rows[0][-1])
    return _matches(collection, rows)


_CURRENT = "(SELECT count(*) FROM collections c WHERE c.id = %s AND c.user_id = %s AND c.name = %s AND c.space = %s)"


def _identity(collection: Collection) -> list[Any]:
    return [collection.id, collection.user, collection.name, collection.space]


def _check_current(count: int) -> None:
    if not count:
        raise Moved


def _table(collection: Collection) -> str:
    assert collection.space is not None
    return vector_table(collection.space)


def _matches(collection: Collection, rows: list[tuple[Any, ...]]) -> list[Match]:
    # The operator answers with the negative product, which for unit vectors is the negative cosine.
    return [match(collection.name, row, distance=max(0.0, 1.0 + row[4])) for row in rows]
