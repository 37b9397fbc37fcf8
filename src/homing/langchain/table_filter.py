"""LangChain's filters as SQL: every key and value a parameter, every type compared as what it is.

`{"year": {"$gte": 2024}, "lang": "zh"}`; `$eq $ne $lt $lte $gt $gte $between $in $nin $like $ilike $exists`, and
`$and $or $not` around them. A text never equals a number. What a filter means can only narrow: it is one condition
behind the user's, and rows of others are not even compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from homing.errors import InvalidArgument

DEEPEST, MOST = 16, 256
COMPARED = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
OPERATORS = ("$eq", "$ne", *COMPARED, "$between", "$in", "$nin", "$like", "$ilike", "$exists")


class FilterSql:
    """Compiles one filter. `field` gives the JSON of a key, as SQL, from the name of the parameter that holds it."""

    def __init__(self, field: Callable[[str, str], str]) -> None:
        self.values: dict[str, Any] = {}
        self._field = field
        self._compared = 0

    def compile(self, condition: Any, depth: int = 0) -> str:
        """The filter as one SQL condition; its values are in `values`."""
        if not isinstance(condition, Mapping):
            raise InvalidArgument(f"a filter is a dict of conditions; got {type(condition).__name__}")
        if depth > DEEPEST:
            raise InvalidArgument(f"a filter is at most {DEEPEST} levels deep")
        parts = [self._part(key, value, depth) for key, value in condition.items()]
        return f"({' AND '.join(parts)})" if parts else "true"

    def _part(self, key: Any, value: Any, depth: int) -> str:
        if not isinstance(key, str):
            raise InvalidArgument(f"a filter names metadata by text; got {key!r}")
        if not key.startswith("$"):
            return self._key(key, value)
        match key.lower():
            case "$and" | "$or" if isinstance(value, list | tuple) and value:
                joint = " AND " if key.lower() == "$and" else " OR "
                return f"({joint.join(self.compile(one, depth + 1) for one in value)})"
            case "$not" if isinstance(value, Mapping):
                return f"(({self.compile(value, depth + 1)}) IS NOT TRUE)"
            case "$not" if isinstance(value, list | tuple) and value:
                return f"(({' OR '.join(self.compile(one, depth + 1) for one in value)}) IS NOT TRUE)"
        raise InvalidArgument(
            f"a filter has no {key!r} around {type(value).__name__}; $and and $or take a list, $not a dict or a list"
        )

    def _key(self, key: str, value: Any) -> str:
        if not isinstance(value, Mapping):
            value = {"$eq": value}
        if not value:
            raise InvalidArgument(f"the filter says nothing about {key!r}")
        self._compared += len(value)
        if self._compared > MOST:
            raise InvalidArgument(f"a filter compares at most {MOST} times")
        field = self._field(key, self._parameter(key))
        return "(" + " AND ".join(self._operation(field, key, name, wanted) for name, wanted in value.items()) + ")"

    def _operation(self, field: str, key: str, operator: Any, wanted: Any) -> str:
        there = f"{_kind(field)} IS NOT NULL AND {_kind(field)} <> 'null'"
        match operator:
            case "$eq":
                return self._equals(field, wanted)
            case "$ne":
                return f"({there} AND {self._equals(field, wanted)} IS NOT TRUE)"
            case "$in" | "$nin" if isinstance(wanted, list | tuple) and len(wanted) <= MOST:
                any_of = " OR ".join(self._equals(field, one) for one in wanted) or "false"
                return f"({any_of})" if operator == "$in" else f"({there} AND ({any_of}) IS NOT TRUE)"
            case "$between" if isinstance(wanted, list | tuple) and len(wanted) == 2:
                return f"({self._compares(field, '>=', wanted[0])} AND {self._compares(field, '<=', wanted[1])})"
            case "$like" | "$ilike" if isinstance(wanted, str):
                return f"({_text(field)} {operator[1:].upper()} {self._text_parameter(wanted)})"
            case "$exists" if isinstance(wanted, bool):
                return f"({there})" if wanted else f"(({there}) IS NOT TRUE)"
        if operator in COMPARED:
            return self._compares(field, COMPARED[operator], wanted)
        raise InvalidArgument(
            f"the filter cannot compare {key!r} by {operator!r} with a {type(wanted).__name__}; "
            f"operators: {', '.join(OPERATORS)}"
        )

    def _equals(self, field: str, wanted: Any) -> str:
        if wanted is None:
            return f"(coalesce({_kind(field)}, 'null') = 'null')"
        if isinstance(wanted, bool):
            return f"({_kind(field)} = 'boolean' AND {_plain(field)} = '{str(wanted).lower()}')"
        return self._compares(field, "=", wanted)

    def _compares(self, field: str, operator: str, wanted: Any) -> str:
        if isinstance(wanted, str):
            return f'({_text(field)} {operator} {self._text_parameter(wanted)} COLLATE "C")'
        if isinstance(wanted, bool) or not isinstance(wanted, int | float) or wanted != wanted or abs(wanted) > 1e300:
            raise InvalidArgument(f"a filter compares with text, finite numbers, true, false and None; got {wanted!r}")
        return f"({_number(field)} {operator} CAST({self._text_parameter(str(wanted))} AS numeric))"

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


def _number(field: str) -> str:
    return f"CASE WHEN {_kind(field)} = 'number' THEN CAST({_plain(field)} AS numeric) END"
