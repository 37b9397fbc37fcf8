"""Metadata filters as conditions on the attributes column."""

from __future__ import annotations

from homing.stores.attributes import Filter
from homing.stores.lance.rows import attribute
from homing.stores.lance.table import quoted


def condition(asked: Filter) -> str | None:
    """What a row must fulfil; None where every row will do."""
    return " AND ".join(_has(key, values) for key, values in asked) or None


def _has(key: str, values: tuple[str, ...]) -> str:
    wanted = [quoted(attribute(key, value)) for value in values]
    if not wanted:
        return "false"
    if len(wanted) == 1:
        return f"array_has(attributes, {wanted[0]})"
    return f"array_has_any(attributes, [{', '.join(wanted)}])"
