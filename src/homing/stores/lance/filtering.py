"""Metadata filters: what LanceDB can ask of the attributes column, and what is left to be looked at afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from homing.stores.filters import AllOf, AnyOf, Compares, Condition, Exists, Filter, Has, Not, matches
from homing.stores.lance.rows import attribute
from homing.stores.lance.table import quoted

OVERFETCH = 3
"""How many times as many rows are asked for at first, where some of them are left out afterwards."""

Found = tuple[float, dict[str, Any]]
"""A measure, and the row that has it."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A filter: the condition that LanceDB is asked with (None for none), and the rest, which it cannot express."""

    condition: str | None
    rest: Filter

    @classmethod
    def by(cls, asked: Filter) -> Narrowed:
        """A filter, taken apart."""
        sql = [_sql(one) for one in asked if _is_expressible(one)]
        return cls(" AND ".join(sql) or None, tuple(one for one in asked if not _is_expressible(one)))

    def __bool__(self) -> bool:
        return self.condition is not None or bool(self.rest)

    def columns(self, wanted: list[str]) -> list[str]:
        """The columns to read, so that the rest can be looked at."""
        return wanted if not self.rest or "metadata" in wanted else [*wanted, "metadata"]

    def passes(self, row: dict[str, Any]) -> bool:
        """Whether a row passes the rest."""
        return not self.rest or matches(self.rest, json.loads(row["metadata"]))

    def filled(self, ask: Callable[[int], list[Found]], limit: int) -> list[Found]:
        """The first `limit` rows that pass, asking for more and more until there are enough or no more exist."""
        reach = limit if not self.rest else limit * OVERFETCH
        while True:
            found = ask(reach)
            kept = [one for one in found if self.passes(one[1])]
            if len(kept) >= limit or len(found) < reach:
                return kept[:limit]
            reach *= 4


def _is_expressible(one: Condition) -> bool:
    match one:
        case Has():
            return True
        case Exists() | Compares():
            return False
        case Not(part):
            return _is_expressible(part)
        case AnyOf(parts) | AllOf(parts):
            return all(map(_is_expressible, parts))


def _sql(one: Condition) -> str:
    match one:
        case Has(key, values):
            return _has(key, values)
        case Not(part):
            return f"NOT ({_sql(part)})"
        case AnyOf(parts):
            return f"({' OR '.join(map(_sql, parts))})"
        case AllOf(parts):
            return f"({' AND '.join(map(_sql, parts))})"
    raise AssertionError(f"not expressible: {one}")


def _has(key: str, values: tuple[str, ...]) -> str:
    wanted = [quoted(attribute(key, value)) for value in values]
    if not wanted:
        return "false"
    if len(wanted) == 1:
        return f"array_has(attributes, {wanted[0]})"
    return f"array_has_any(attributes, [{', '.join(wanted)}])"
