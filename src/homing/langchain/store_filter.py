"""LangChain's filters as those of a store, with LangChain's meaning: `$ne` and `$nin` need a value to differ from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homing.errors import InvalidArgument

MAX_DEPTH = 16

Tree = dict[str, Any]


def store_filter(given: Any, depth: int = 0) -> Tree:
    """The filter in the words of `stores.filters`, which checks the values. A missing value and None are the same."""
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"a filter is a dict of conditions; got {type(given).__name__}")
    if depth > MAX_DEPTH:
        raise InvalidArgument(f"a filter is at most {MAX_DEPTH} levels deep")
    return _all([_part(key, value, depth + 1) for key, value in given.items()])


def _part(key: Any, value: Any, depth: int) -> Tree:
    if not isinstance(key, str):
        raise InvalidArgument(f"a filter names metadata by text; got {key!r}")
    if not key.startswith("$"):
        return _of_key(key, value)
    several = isinstance(value, list | tuple) and len(value) > 0
    match key.lower():
        case "$and" | "$or" if several:
            return {key.lower(): [store_filter(one, depth) for one in value]}
        case "$not" if several:
            return {"$not": {"$or": [store_filter(one, depth) for one in value]}}
        case "$not" if isinstance(value, Mapping):
            return {"$not": store_filter(value, depth)}
    raise InvalidArgument(
        f"a filter has no {key!r} around {type(value).__name__}; $and and $or take a list, $not a dict or a list"
    )


def _of_key(key: str, value: Any) -> Tree:
    if not isinstance(value, Mapping):
        value = {"$in" if isinstance(value, list | tuple) else "$eq": value}
    if not value or not all(isinstance(one, str) and one.startswith("$") for one in value):
        raise InvalidArgument(f"the filter compares {key!r} by no operator; write {{{key!r}: {{'$eq': value}}}}")
    return _all([_operation(key, operator, operand) for operator, operand in value.items()])


def _operation(key: str, operator: str, operand: Any) -> Tree:
    there: Tree = {"$not": _equals(key, None)}
    match operator:
        case "$eq":
            return _equals(key, operand)
        case "$ne":
            return {"$and": [there, {"$not": _equals(key, operand)}]}
        case "$in" if isinstance(operand, list | tuple) and None in operand:
            return {"$or": [_equals(key, None), {key: {"$in": [one for one in operand if one is not None]}}]}
        case "$nin":
            return {"$and": [there, {key: {"$nin": operand}}]}
        case "$exists" if isinstance(operand, bool):
            return there if operand else _equals(key, None)
        case "$between" if isinstance(operand, list | tuple) and len(operand) == 2:
            return {key: {"$gte": operand[0], "$lte": operand[1]}}
    return {key: {operator: operand}}


def _equals(key: str, value: Any) -> Tree:
    if value is None:
        return {"$or": [{key: {"$exists": False}}, {key: {"$eq": None}}]}
    return {key: {"$eq": value}}


def _all(parts: list[Tree]) -> Tree:
    if len(parts) > 1:
        return {"$and": parts}
    return parts[0] if parts else {}
