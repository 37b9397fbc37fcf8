"""Metadata filters as conditions on the array of a record's attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homing.stores.attributes import Filter, attributes, canonical


def labels(collection: int, metadata: Mapping[str, Any]) -> list[str]:
    """The metadata of a record as its row holds it: plain ASCII, whatever is in it."""
    return [_label(collection, key, value) for key, value in attributes(metadata)]


def conditions(collection: int, asked: Filter, column: str) -> tuple[str, list[Any]]:
    """`AND …` for each pair of a filter, and the values it compares with."""
    sql = "".join(f" AND {column} && %s::text[]" for _ in asked)
    return sql, [[_label(collection, key, value) for value in values] for key, values in asked]


def _label(collection: int, key: str, value: str) -> str:
    return f"{collection} {canonical(key)} {value}"
