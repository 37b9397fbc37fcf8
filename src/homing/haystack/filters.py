"""Filters of Haystack as the stores of Homing read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from haystack.errors import FilterError

Filters = Mapping[str, Any]
NOTHING: Filters = {"id": {"$in": []}}
_SIGNS = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}


def where_of(filters: Filters | None) -> Filters:
    """A filter of Haystack as the stores read it. Raises FilterError for what is none."""
    if not filters:
        return {}
    if "field" in filters:
        return _comparison(filters)
    if "operator" not in filters or "conditions" not in filters:
        raise FilterError(f"a filter has an operator, and a field or conditions; got {sorted(filters)}")
    parts = [where_of(one) for one in filters["conditions"]]
    if not parts:
        raise FilterError("the conditions of a filter are empty")
    match str(filters["operator"]).upper():
        case "AND":
            return {"$and": parts}
        case "OR":
            return {"$or": parts}
        case "NOT":
            return {"$not": {"$and": parts}}
    raise FilterError(f"there is no operator {filters['operator']!r}; known: AND, OR, NOT")


def _comparison(condition: Filters) -> Filters:
    if "operator" not in condition or "value" not in condition:
        raise FilterError(f"a condition has field, operator and value; got {sorted(condition)}")
    field, operator, value = condition["field"], condition["operator"], condition["value"]
    if field in ("content", "embedding", "score", "blob"):
        raise FilterError(f"a filter asks about id and meta; {field!r} is neither")
    key = field if field == "id" or str(field).startswith("meta.") else f"meta.{field}"
    match operator:
        case "==" | "!=":
            if isinstance(value, list):
                raise FilterError(f"{operator} compares with one value; use in and not in for {value!r}")
            return _equals(key, value) if operator == "==" else {"$not": _equals(key, value)}
        case "in" | "not in":
            if not isinstance(value, list):
                raise FilterError(f"{operator} takes a list; got {type(value).__name__}")
            any_of: Filters = {"$or": [_equals(key, one) for one in value]} if value else NOTHING
            return any_of if operator == "in" else {"$not": any_of}
        case _ if operator in _SIGNS:
            return NOTHING if value is None else {key: {_SIGNS[operator]: _ordered(value)}}
    raise FilterError(f"there is no operator {operator!r}; known: ==, !=, >, >=, <, <=, in, not in")


def _equals(key: str, value: Any) -> Filters:
    value = value.isoformat() if isinstance(value, datetime) else value
    return {"$or": [{key: {"$exists": False}}, {key: {"$eq": None}}]} if value is None else {key: {"$eq": value}}


def _ordered(value: Any) -> int | float | str:
    """What can be smaller or larger: a number, or a date in the ISO form."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise FilterError(f"texts are ordered where they are dates in the ISO form; got {value!r}") from None
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FilterError(f"numbers and dates are ordered; got {type(value).__name__}")
    return value
