"""Metadata filters as SQL: equality on the array of a record's attributes, everything else on the metadata itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homing.stores.filters import AllOf, AnyOf, Compares, Condition, Exists, Has, Not, attributes, canonical


def labels(collection: int, metadata: Mapping[str, Any]) -> list[str]:
    """The metadata of a record as its row holds it: plain ASCII, whatever is in it."""
    return [_label(collection, key, value) for key, value in attributes(metadata)]


def conditions(collection: int, asked: Iterable[Condition], row: str) -> tuple[str, list[Any]]:
    """`AND …` for each condition of a filter on a row of `records`, and the values it compares with."""
    sql, values = "", list[Any]()
    for one in asked:
        part, bound = _condition(collection, one, row)
        sql += f" AND {part}"
        values += bound
    return sql, values


def _condition(collection: int, one: Condition, row: str) -> tuple[str, list[Any]]:
    match one:
        case Has(key, accepted):
            return f"{row}.attributes && %s::text[]", [[_label(collection, key, value) for value in accepted]]
        case Exists(key):
            return f"({row}.metadata -> %s) IS NOT NULL", [key]
        case Compares(key, sign, value):
            # A list is met when one of its items is. A text with NUL in it has no form as a value of the server.
            kind, written = ("string", 'COLLATE "C"') if isinstance(value, str) else ("number", "::numeric")
            compared = f"((item #>> '{{}}') {written} {sign} %s{'' if isinstance(value, str) else '::numeric'})"
            known = f"json_typeof(item) = '{kind}' AND strpos(item::text, '\\u0000') = 0"
            sql = (
                f"EXISTS (SELECT 1 FROM json_array_elements(CASE json_typeof({row}.metadata -> %s) WHEN 'array' "
                f"THEN {row}.metadata -> %s ELSE json_build_array({row}.metadata -> %s) END) AS items(item) "
                f"WHERE CASE WHEN {known} THEN {compared} ELSE false END)"
            )
            return sql, [key, key, key, value]
        case Not(part):
            sql, values = _condition(collection, part, row)
            return f"NOT {sql}", values
        case AnyOf(parts) | AllOf(parts):
            found = [_condition(collection, part, row) for part in parts]
            joint = " OR " if isinstance(one, AnyOf) else " AND "
            return f"({joint.join(sql for sql, _ in found)})", [value for _, bound in found for value in bound]


def _label(collection: int, key: str, value: str) -> str:
    return f"{collection} {canonical(key)} {value}"
