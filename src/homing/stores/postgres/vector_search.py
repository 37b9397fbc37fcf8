"""The nearest records: by the index where there are many, compared one by one where there are few.

The index holds vectors in half precision, which halves it and makes it faster at the same recall; what it finds is
compared again exactly. It goes on looking while a filter throws away what it found, up to a bound. Where it comes back
with fewer than were asked for, or where the last places tie, everything is compared: an answer is never short of
records that exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from homing.database.postgres.driver import Connection
from homing.database.postgres.pool import EF_SEARCH
from homing.stores.filters import Filter
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.reading import conditions
from homing.stores.postgres.schema import vector_table
from homing.vectors import Vector

COMPARED = 30
"""Vectors that can be compared one by one in the time that the index takes to look at one."""
COMPARED_FILTERED = 8
"""The same where a filter names them: each is fetched by its key."""
WIDEST_INDEXED = 4_000
"""Dimensions up to which pgvector can index vectors in half precision."""

Row = tuple[Any, ...]


class CollectionChanged(Exception):
    """The collection is no longer what it was when it was looked up; look again."""


def search(
    connection: Connection, collection: Collection, query: Vector, limit: int, asked: Filter, shown: str
) -> list[Row]:
    """The nearest `limit` records, if so many exist, by cosine and then id: the cosine, and the columns of `shown`."""
    if indexable(collection, limit) and not (asked and _few(connection, collection, asked)):
        found = _by_index(connection, collection, query, limit, asked, shown)
        if found is not None:
            return found
    return _one_by_one(connection, collection, query, limit, asked, shown)


def cosines(
    connection: Connection, collection: Collection, query: Vector | None, ids: Sequence[str]
) -> dict[str, float | None]:
    """How near the records of these ids are that exist; None for one without a vector."""
    score, joined, values = "NULL", "", []
    if query is not None and collection.space is not None:
        score, joined = "v.embedding <#> %s", f"LEFT JOIN {_table(collection)} v ON v.record = r.key"
        values = [query]
    rows = connection.execute(
        f"SELECT r.id, {score} FROM records r {joined} WHERE r.collection = %s AND r.user_id = %s AND r.id = ANY(%s)",
        [*values, collection.id, collection.user, list(ids)],
        binary=True,
    ).fetchall()
    return {name: None if score is None else _cosine(score) for name, score in rows}


def indexable(collection: Collection, limit: int) -> bool:
    """Whether the index is the faster way: it is shared by all collections of a model, and passes by the others'."""
    looked_at = max(EF_SEARCH, _fetched(limit)) / max(collection.share, 1e-6)
    return collection.indexed and looked_at * COMPARED < collection.embedded


def _few(connection: Connection, collection: Collection, asked: Filter) -> bool:
    """Whether a filter lets so few through that comparing them is faster than passing by all others in the index."""
    most = math.isqrt(COMPARED_FILTERED * EF_SEARCH * collection.embedded)
    filtered, values = conditions(collection, asked, "f")
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
    connection: Connection, collection: Collection, query: Vector, limit: int, asked: Filter, shown: str
) -> list[Row] | None:
    half = f"halfvec({collection.dimensions})"
    fetched = _fetched(limit)
    filtered, values = conditions(collection, asked, "f")
    joined = "JOIN records f ON f.key = v.record" if asked else ""
    rows = connection.execute(
        f"WITH near AS MATERIALIZED (SELECT v.record, v.embedding <#> %s AS score FROM {_table(collection)} v {joined} "
        f"WHERE v.collection = %s AND v.user_id = %s{filtered} ORDER BY v.embedding::{half} <#> %s::{half} LIMIT %s) "
        f"SELECT {_CURRENT}, (SELECT max(score) FROM near), (SELECT count(*) FROM near), n.score, {shown} "
        "FROM (SELECT record, score FROM near ORDER BY score FETCH FIRST %s ROWS WITH TIES) n "
        "JOIN records r ON r.key = n.record ORDER BY n.score, r.id LIMIT %s",
        [query, collection.id, collection.user, *values, query, fetched, *_identity(collection), limit, limit],
        binary=True,
        # A filter is planned for its own values: whether it is rare decides how to look.
        prepare=False if asked else None,
    ).fetchall()
    if not rows:
        return None
    current, last, count, score, *_ = rows[-1]
    _check_current(current)
    if count < fetched or (len(rows) == limit and score == last):
        return None
    return [(_cosine(row[3]), *row[4:]) for row in rows]


def _one_by_one(
    connection: Connection, collection: Collection, query: Vector, limit: int, asked: Filter, shown: str
) -> list[Row]:
    filtered, values = conditions(collection, asked, "f")
    joined = "JOIN records f ON f.key = v.record" if asked else ""
    rows = connection.execute(
        f"SELECT {_CURRENT}, n.score, {shown} FROM ("
        f"SELECT v.record, v.embedding <#> %s AS score FROM {_table(collection)} v {joined} "
        f"WHERE v.collection = %s AND v.user_id = %s{filtered} ORDER BY score FETCH FIRST %s ROWS WITH TIES"
        ") n JOIN records r ON r.key = n.record ORDER BY n.score, r.id LIMIT %s",
        [*_identity(collection), query, collection.id, collection.user, *values, limit, limit],
        binary=True,
        prepare=False if asked else None,
    ).fetchall()
    if rows:
        _check_current(rows[0][0])
    return [(_cosine(row[1]), *row[2:]) for row in rows]


_CURRENT = "(SELECT count(*) FROM collections c WHERE c.id = %s AND c.user_id = %s AND c.name = %s AND c.space = %s)"


def _identity(collection: Collection) -> list[Any]:
    return [collection.id, collection.user, collection.name, collection.space]


def _check_current(count: int) -> None:
    if not count:
        raise CollectionChanged


def _table(collection: Collection) -> str:
    assert collection.space is not None
    return vector_table(collection.space)


def _cosine(score: float) -> float:
    # The operator answers with the negative product, which for unit vectors is the negative cosine.
    return min(1.0, -score)
