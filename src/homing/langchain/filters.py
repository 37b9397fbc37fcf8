"""LangChain's filters: read into the words of `stores.filters`, which a store takes as they are and a table as SQL.

`{"year": {"$gte": 2024}, "lang": "zh"}`; `$eq $ne $lt $lte $gt $gte $between $in $nin $exists`, on a table `$like` and
`$ilike` too, and `$and $or $not` around them. A missing value and None are the same, and `$ne` and `$nin` need a value
to differ from. What a filter means can only narrow: it is one condition behind the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from homing.errors import InvalidArgument

MAX_DEPTH = 16
MAX_VALUES = 256
"""Values of one list that a table is asked for …"""
MAX_COMPARISONS = 3 * MAX_VALUES
"""… and comparisons in all; `$ne` is three: a value must be there, must not be null, and must differ."""

_SIGNS = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
_OPERATORS = ("$eq", "$ne", *_SIGNS, "$between", "$in", "$nin", "$like", "$ilike", "$exists")

Tree = Mapping[str, Any]
"""`$and`, `$or` and `$not` around conditions on one key each. Their values are checked by whoever answers them."""


def filter_tree(given: Any, depth: int = 0) -> Tree:
    """What a filter means. Raises InvalidArgument for what is none."""
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
            return {key.lower(): [filter_tree(one, depth) for one in value]}
        case "$not" if several:
            return {"$not": {"$or": [filter_tree(one, depth) for one in value]}}
        case "$not" if isinstance(value, Mapping):
            return {"$not": filter_tree(value, depth)}
    raise InvalidArgument(
        f"a filter has no {key!r} around {type(value).__name__}; $and and $or take a list, $not a dict or a list"
    )


def _of_key(key: str, value: Any) -> Tree:
    if isinstance(value, list | tuple):
        # To a store one of these; to a table nothing.
        return {key: value}
    if not isinstance(value, Mapping):
        value = {"$eq": value}
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


class FilterSql:
    """A filter as SQL: every key and value a parameter, every type compared as what it is.

    A text never equals a number. `field` gives the JSON of a key, as SQL, from the name of the parameter that holds it.
    """

    def __init__(self, tree: Tree, field: Callable[[str, str], str]) -> None:
        self.values: dict[str, Any] = {}
        self._field = field
        self._compared = 0
        self.sql = self._tree(tree)

    def _tree(self, tree: Tree) -> str:
        if not tree:
            return "true"
        [(key, value)] = tree.items()
        match key:
            case "$and" | "$or":
                return f"({f' {key[1:].upper()} '.join(map(self._tree, value))})"
            case "$not":
                return f"({self._tree(value)} IS NOT TRUE)"
        operations = value if isinstance(value, Mapping) else {"$eq": value}
        self._compared += len(operations)
        if self._compared > MAX_COMPARISONS:
            raise InvalidArgument(f"a filter compares at most {MAX_COMPARISONS} times")
        field = self._field(key, self._parameter(key))
        return f"({' AND '.join(self._compares(field, key, *one) for one in operations.items())})"

    def _compares(self, field: str, key: str, operator: str, wanted: Any) -> str:
        match operator:
            case "$eq":
                return self._equals(field, wanted)
            case "$in" | "$nin" if isinstance(wanted, list | tuple) and len(wanted) <= MAX_VALUES:
                any_of = " OR ".join(self._equals(field, one) for one in wanted) or "false"
                return f"({any_of})" if operator == "$in" else f"(({any_of}) IS NOT TRUE)"
            case "$like" | "$ilike" if isinstance(wanted, str):
                return f"({_text(field)} {operator[1:].upper()} {self._text_parameter(wanted)})"
            case "$exists" if isinstance(wanted, bool):
                return f"({_kind(field)} IS {'NOT ' if wanted else ''}NULL)"
            case _ if operator in _SIGNS:
                return self._ordered(field, _SIGNS[operator], wanted)
        raise InvalidArgument(
            f"the filter cannot compare {key!r} by {operator!r} with a {type(wanted).__name__}; "
            f"operators: {', '.join(_OPERATORS)}"
        )

    def _equals(self, field: str, wanted: Any) -> str:
        if wanted is None:
            return f"({_kind(field)} = 'null')"
        if isinstance(wanted, bool):
            return f"({_kind(field)} = 'boolean' AND {_plain(field)} = '{str(wanted).lower()}')"
        return self._ordered(field, "=", wanted)

    def _ordered(self, field: str, sign: str, wanted: Any) -> str:
        if isinstance(wanted, str):
            return f'({_text(field)} {sign} {self._text_parameter(wanted)} COLLATE "C")'
        if isinstance(wanted, bool) or not isinstance(wanted, int | float) or wanted != wanted or abs(wanted) > 1e300:
            raise InvalidArgument(f"a filter compares with text, finite numbers, true, false and None; got {wanted!r}")
        number = f"CASE WHEN {_kind(field)} = 'number' THEN CAST({_plain(field)} AS numeric) END"
        return f"({number} {sign} CAST({self._text_parameter(str(wanted))} AS numeric))"

    def _text_parameter(self, value: str) -> str:
        return f"CAST(:{self._parameter(value)} AS text)"

    def _parameter(self, value: str) -> str:
        if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
            raise InvalidArgument(f"a filter holds text that no database can: {value!r}")
        name = f"f{len(self.values)}"
        self.values[name] = value
        return name


def _kind(field: str) -> str:
    return f"jsonb_typeof({field})"


def _plain(field: str) -> str:
    return f"({field} #>> '{{}}')"


def _text(field: str) -> str:
    return f"CASE WHEN {_kind(field)} = 'string' THEN {_plain(field)} END"
