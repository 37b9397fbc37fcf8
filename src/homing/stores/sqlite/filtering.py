"""Metadata filters as SQL on the attribute table."""

from __future__ import annotations

import json

import apsw
import numpy as np

from homing.database.sqlite.rows import rows
from homing.stores.attributes import Filter
from homing.stores.sqlite.codes import Keys

Binding = str | int | bytes

COUNTED = 10_000
"""How far pairs are counted to see which is the rarest."""

_HAS = "collection = ? AND key = ? AND value IN (SELECT value FROM json_each(?))"


def conditions(collection: int, asked: Filter, record: str) -> tuple[str, list[Binding]]:
    """`AND EXISTS …` for each pair of a filter, on the column that holds the key of a record."""
    sql, bindings = "", list[Binding]()
    for key, values in asked:
        sql += f" AND EXISTS (SELECT 1 FROM attributes WHERE {_HAS} AND record = {record})"
        bindings += _bound(collection, key, values)
    return sql, bindings


def is_selective(connection: apsw.Connection, collection: int, asked: Filter, few: int) -> bool:
    """Whether a filter certainly lets no more than `few` records through."""
    return any(_count(connection, collection, pair, few + 1) <= few for pair in asked)


def matching(connection: apsw.Connection, collection: int, asked: Filter) -> Keys:
    """The keys of all records that pass a filter."""
    # The rarest pair leads; the others are looked up for what it lets through.
    if len(asked) > 1:
        asked = tuple(sorted(asked, key=lambda pair: _count(connection, collection, pair, COUNTED)))
    first, *others = asked
    rest, bindings = conditions(collection, tuple(others), "a.record")
    found = rows(
        connection,
        "SELECT DISTINCT a.record FROM attributes a "
        f"WHERE a.collection = ? AND a.key = ? AND a.value IN (SELECT value FROM json_each(?)){rest}",
        (*_bound(collection, *first), *bindings),
    )
    return np.sort(np.fromiter((key for (key,) in found), np.int64, len(found)))


def passing(connection: apsw.Connection, collection: int, asked: Filter, records: Keys) -> Keys:
    """Those of these records that pass a filter."""
    sql, bindings = conditions(collection, asked, "given.value")
    found = rows(
        connection,
        f"SELECT given.value FROM json_each(?) AS given WHERE 1{sql}",
        (json.dumps(records.tolist()), *bindings),
    )
    return np.fromiter((key for (key,) in found), np.int64, len(found))


def _count(connection: apsw.Connection, collection: int, pair: tuple[str, tuple[str, ...]], at_most: int) -> int:
    [(count,)] = rows(
        connection,
        f"SELECT count(*) FROM (SELECT 1 FROM attributes WHERE {_HAS} LIMIT ?)",
        (*_bound(collection, *pair), at_most),
    )
    return int(count)


def _bound(collection: int, key: str, values: tuple[str, ...]) -> tuple[Binding, ...]:
    return collection, stored_key(key), json.dumps(values)


def stored_key(key: str) -> Binding:
    """A metadata key as the table holds it: text, or bytes where UTF-8 cannot hold it."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")
    return key
