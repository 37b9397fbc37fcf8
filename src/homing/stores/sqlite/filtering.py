"""Metadata filters as SQL on the attribute table."""

from __future__ import annotations

import json

import apsw
import numpy as np

from homing.stores.attributes import Filter
from homing.stores.sqlite.codes import Keys

Binding = str | int | bytes

_HAS = "collection = ? AND key = ? AND value IN (SELECT value FROM json_each(?))"


def conditions(collection: int, asked: Filter, record: str) -> tuple[str, list[Binding]]:
    """`AND EXISTS …` for each pair of a filter, on the column that holds the key of a record."""
    sql, bindings = "", list[Binding]()
    for key, values in asked:
        sql += f" AND EXISTS (SELECT 1 FROM attributes WHERE {_HAS} AND record = {record})"
        bindings += _bound(collection, key, values)
    return sql, bindings


def matching(connection: apsw.Connection, collection: int, asked: Filter, at_most: int) -> Keys | None:
    """The keys of the records that pass a filter; None where there are more than `at_most`."""
    # The rarest pair leads; the others are looked up for what it lets through.
    if len(asked) > 1:
        asked = tuple(sorted(asked, key=lambda pair: _count(connection, collection, pair, at_most + 1)))
    first, *others = asked
    rest, bindings = conditions(collection, tuple(others), "a.record")
    rows = connection.execute(
        "SELECT DISTINCT a.record FROM attributes a "
        f"WHERE a.collection = ? AND a.key = ? AND a.value IN (SELECT value FROM json_each(?)){rest} LIMIT ?",
        (*_bound(collection, *first), *bindings, at_most + 1),
    ).fetchall()
    if len(rows) > at_most:
        return None
    return np.sort(np.fromiter((row[0] for row in rows), np.int64, len(rows)))


def passing(connection: apsw.Connection, collection: int, asked: Filter, records: Keys) -> Keys:
    """Those of these records that pass a filter, in the order given."""
    sql, bindings = conditions(collection, asked, "given.value")
    rows = connection.execute(
        f"SELECT given.value FROM json_each(?) AS given WHERE 1{sql} ORDER BY given.key",
        (json.dumps(records.tolist()), *bindings),
    ).fetchall()
    return np.fromiter((row[0] for row in rows), np.int64, len(rows))


def _count(connection: apsw.Connection, collection: int, pair: tuple[str, tuple[str, ...]], at_most: int) -> int:
    count: int = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM attributes WHERE {_HAS} LIMIT ?)", (*_bound(collection, *pair), at_most)
    ).get
    return count


def _bound(collection: int, key: str, values: tuple[str, ...]) -> tuple[Binding, ...]:
    return collection, stored_key(key), json.dumps(values)


def stored_key(key: str) -> Binding:
    """A metadata key as the table holds it: text, or bytes where UTF-8 cannot hold it."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")
    return key
