"""What a search may be narrowed to: a tree of conditions on metadata, and what each of them means.

    {"kind": "note"}                                        equal; a list means one of these
    {"year": {"$gte": 2020, "$lt": 2030}}                   $eq $ne $lt $lte $gt $gte $in $nin $exists
    {"$or": [{"kind": "note"}, {"$not": {"tags": "old"}}]}  $and $or $not

A value equals a value of the metadata that is the same, type included (`1` is not `"1"` and not `True`, but is `1.0`);
a list in the metadata is met when one of its items is. Numbers are compared with numbers, texts with texts by code
point; anything else is neither smaller nor larger. `$ne`, `$nin` and `$not` hold where the plain condition does not,
also for a record without the key.

What is asked by equality, and what engines index, are pairs of a key and a value as its canonical JSON: `1`, `"1"` and
`true` differ while `1` and `1.0`, which JSON does not tell apart, are one. Each item of a list is a pair of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

from homing.errors import InvalidArgument
from homing.stores.arguments import check_metadata
from homing.stores.store import SearchOptions

MAX_DEPTH = 32
"""How deep conditions may lie inside each other."""

MAX_VALUE = 120
"""Characters of a canonical value that are kept as they are."""

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_SIGNS = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
_KNOWN = ("$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$in", "$nin", "$exists")


@dataclass(frozen=True, slots=True)
class Has:
    """A key with one of these values, each in its canonical form; with none of them, nothing passes."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """A key, whatever its value."""

    key: str


@dataclass(frozen=True, slots=True)
class Compares:
    """A key with a value that is smaller or larger than another."""

    key: str
    sign: str
    value: int | float | str


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of several conditions."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    part: Condition


Condition = Has | Exists | Compares | AnyOf | AllOf | Not
Filter = tuple[Condition, ...]
"""Conditions that must all be met; none lets everything through."""


def wanted(options: SearchOptions | None) -> Filter:
    """The filter of a search. Raises InvalidArgument for what is none."""
    if options is None or not options.metadata_filter:
        return ()
    return _all(options.metadata_filter, "metadata_filter", 0)


def matches(asked: Filter, metadata: Mapping[str, Any]) -> bool:
    """Whether metadata passes a filter: what every engine must agree with."""
    return all(_matches(one, metadata) for one in asked)


def _matches(one: Condition, metadata: Mapping[str, Any]) -> bool:
    match one:
        case Has(key, values):
            return (
                any((key, value) in attributes({key: metadata[key]}) for value in values) if key in metadata else False
            )
        case Exists(key):
            return key in metadata
        case Compares(key, sign, value):
            return any(_comparable(item, value) and _COMPARISONS[sign](item, value) for item in _items(metadata, key))
        case AnyOf(parts):
            return any(_matches(part, metadata) for part in parts)
        case AllOf(parts):
            return all(_matches(part, metadata) for part in parts)
        case Not(part):
            return not _matches(part, metadata)


def _items(metadata: Mapping[str, Any], key: str) -> Iterator[Any]:
    if key in metadata:
        value = metadata[key]
        yield from value if isinstance(value, list | tuple) else [value]


def _comparable(item: Any, value: int | float | str) -> bool:
    if isinstance(item, bool):
        return False
    return isinstance(item, str) if isinstance(value, str) else isinstance(item, int | float)


def _all(given: Any, path: str, depth: int) -> Filter:
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"{path} is a mapping; got {type(given).__name__}", details={"path": path})
    if depth > MAX_DEPTH:
        raise InvalidArgument(f"{path} lies more than {MAX_DEPTH} conditions deep; make it flatter")
    for key in given:
        if not isinstance(key, str):
            raise InvalidArgument(f"{path} has the key {key!r}; keys are text", details={"path": path})
    return tuple(one for key in sorted(given) for one in _conditions(key, given[key], path, depth))


def _conditions(key: str, value: Any, path: str, depth: int) -> Iterator[Condition]:
    here = f"{path}.{key}"
    match key:
        case "$and" | "$or":
            if not isinstance(value, list | tuple) or not value:
                raise InvalidArgument(f"{here} is a list of conditions", details={"path": here})
            parts = tuple(_joined(_all(one, f"{here}[{at}]", depth + 1)) for at, one in enumerate(value))
            yield AllOf(parts) if key == "$and" else AnyOf(parts)
        case "$not":
            yield Not(_joined(_all(value, here, depth + 1)))
        case _ if key.startswith("$"):
            raise InvalidArgument(f"{here}: there is no {key}; known: $and, $or, $not", details={"path": here})
        case _ if isinstance(value, Mapping) and value and all(str(one).startswith("$") for one in value):
            for operator in sorted(value):
                yield _operation(key, operator, value[operator], here)
        case _:
            yield _equals(key, value, here)


def _operation(key: str, operator: str, value: Any, path: str) -> Condition:
    match operator:
        case "$eq":
            check_metadata({key: value}, path)
            return Has(key, (canonical(value),))
        case "$ne":
            return Not(_operation(key, "$eq", value, path))
        case "$in" | "$nin":
            if not isinstance(value, list | tuple):
                raise InvalidArgument(f"{path}.{operator} is a list of values", details={"path": path})
            found = _equals(key, value, path)
            return found if operator == "$in" else Not(found)
        case "$exists":
            if not isinstance(value, bool):
                raise InvalidArgument(f"{path}.$exists is true or false; got {value!r}", details={"path": path})
            return Exists(key) if value else Not(Exists(key))
        case _ if operator in _SIGNS:
            if isinstance(value, bool) or not isinstance(value, int | float | str) or value != value:
                raise InvalidArgument(f"{path}.{operator} is a number or a text; got {value!r}", details={"path": path})
            return Compares(key, _SIGNS[operator], value)
    raise InvalidArgument(f"{path}: there is no {operator}; known: {', '.join(_KNOWN)}", details={"path": path})


def _equals(key: str, value: Any, path: str) -> Has:
    check_metadata({key: value}, path)
    items = value if isinstance(value, list | tuple) else [value]
    return Has(key, tuple(sorted({canonical(item) for item in items})))


def _joined(parts: Filter) -> Condition:
    return parts[0] if len(parts) == 1 else AllOf(parts)


def attributes(metadata: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The pairs that a record with this metadata is found by."""
    pairs: set[tuple[str, str]] = set()
    for key, value in metadata.items():
        if isinstance(value, list | tuple):
            pairs.update((key, canonical(item)) for item in value)
        else:
            pairs.add((key, canonical(value)))
    return pairs


def canonical(value: Any) -> str:
    """One text per value: equal texts, equal values."""
    if type(value) is str:
        text = json.dumps(value)
    elif type(value) is int:
        return str(value) if -(10**MAX_VALUE) < value < 10**MAX_VALUE else _hashed(json.dumps(value))
    else:
        text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return text if len(text) <= MAX_VALUE else _hashed(text)


def _hashed(text: str) -> str:
    # Only equality is ever asked, so a long value is named by its hash. No JSON text begins with '#'.
    return "#" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
