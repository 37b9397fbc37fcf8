"""Metadata filters as SQL: equality on the attribute table, everything else on the metadata itself."""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw
import numpy as np

from homing.database.sqlite.database import rows
from homing.stores.filters import AllOf, AnyOf, Compares, Condition, Exists, Filter, Has, Not
from homing.stores.sqlite.codes import Keys

Binding = str | int | float | bytes

COUNTED = 10_000
"""How far pairs are counted at least, to see which is the rarest."""

_HAS = "collection = ? AND key = ? AND value IN (SELECT value FROM json_each(?))"


def conditions(collection: int, asked: Iterable[Condition], record: str) -> tuple[str, list[Binding]]:
    """`AND …` for each condition of a filter, on the column that holds the key of a record."""
    sql, bindings = "", list[Binding]()
    for one in asked:
        part, bound = _condition(collection, one, record)
        sql += f" AND {part}"
        bindings += bound
    return sql, bindings


def among(collection: int, asked: Filter, lead: Has, record: str) -> tuple[str, list[Binding]]:
    """As `conditions`, with the records of one pair named beforehand: cheaper to ask, where those are few."""
    sql, bound = holders(collection, lead)
    rest, bindings = conditions(collection, [one for one in asked if one is not lead], record)
    return f" AND {record} IN (SELECT record {sql}){rest}", [*bound, *bindings]


def holders(collection: int, pair: Has) -> tuple[str, list[Binding]]:
    """`FROM …`: the rows of the attribute table that a pair has."""
    return f"FROM attributes WHERE {_HAS}", [*_bound(collection, pair)]


def matching(connection: apsw.Connection, collection: int, asked: Filter, lead: Has | None) -> Keys:
    """The keys of all records that pass a filter; `lead` is the rarest of its pairs."""
    if lead is None:
        rest, bindings = conditions(collection, asked, "r.key")
        found = rows(connection, f"SELECT r.key FROM records r WHERE r.collection = ?{rest}", (collection, *bindings))
    else:
        # The others are looked up for what it lets through.
        rest, bindings = conditions(collection, [one for one in asked if one is not lead], "a.record")
        sql = (
            "SELECT DISTINCT a.record FROM attributes a "
            f"WHERE a.collection = ? AND a.key = ? AND a.value IN (SELECT value FROM json_each(?)){rest}"
        )
        found = rows(connection, sql, (*_bound(collection, lead), *bindings))
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


def stored_key(key: str) -> str | bytes:
    """A metadata key as the table holds it: text, or bytes where UTF-8 cannot hold it."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return key.encode("utf-8", "surrogatepass")
    return key


def _condition(collection: int, one: Condition, record: str) -> tuple[str, list[Binding]]:
    match one:
        case Has():
            sql = f"EXISTS (SELECT 1 FROM attributes WHERE {_HAS} AND record = {record})"
            return sql, [*_bound(collection, one)]
        case Exists(key):
            return f"EXISTS ({_values(record)})", [_name(key)]
        case Compares(key, sign, value):
            kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
            # A list is met when one of its items is.
            items = "json_each(CASE v.type WHEN 'array' THEN v.value ELSE json_array(v.value) END) item"
            known = "v.type NOT IN ('true', 'false', 'null', 'object')"
            sql = f"{_values(record, items)} AND {known} AND item.type IN {kinds} AND item.value {sign} ?"
            return f"EXISTS ({sql})", [_name(key), value]
        case Not(part):
            sql, bindings = _condition(collection, part, record)
            return f"NOT {sql}", bindings
        case AnyOf(parts) | AllOf(parts):
            found = [_condition(collection, part, record) for part in parts]
            joint = " OR " if isinstance(one, AnyOf) else " AND "
            return f"({joint.join(sql for sql, _ in found)})", [value for _, bound in found for value in bound]


def _values(record: str, items: str = "") -> str:
    """SQL for the value of a key in the metadata of a record, and for its items."""
    source = f"records m, json_each(m.metadata) v{', ' + items if items else ''}"
    return f"SELECT 1 FROM {source} WHERE m.key = {record} AND v.key = ?"


def _name(key: str) -> str:
    # Half a surrogate pair is written escaped, and read back as a character of replacement: it is found by nothing.
    return key.encode("utf-8", "replace").decode()


def _bound(collection: int, pair: Has) -> tuple[Binding, ...]:
    return collection, stored_key(pair.key), json.dumps(pair.values)
