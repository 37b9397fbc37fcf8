"""How many records a filter lets through, about: what decides how a search goes about it, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from homing.database.sqlite.database import rows
from homing.stores.filters import Filter, Has
from homing.stores.sqlite import filtering

REMEMBERED = 1_000
"""Filters whose estimates are kept."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The rarest pair of a filter, and how many records have it, counted up to a border; `of` is of how many."""

    pair: Has | None
    count: int
    of: int


class Estimates:
    """Estimates that were made a while ago, which cost at most some time when they are wrong."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, Filter], Estimate] = {}

    def of(self, connection: apsw.Connection, collection: int, records: int, asked: Filter) -> Estimate:
        """How many records of a collection pass; made anew once it has grown or shrunk by a tenth."""
        found = self._held.get((collection, asked))
        if found is None or abs(records - found.of) > found.of // 10:
            found = _counted(connection, collection, records, asked)
            if len(self._held) >= REMEMBERED:
                self._held.clear()
            self._held[collection, asked] = found
        return found


def _counted(connection: apsw.Connection, collection: int, records: int, asked: Filter) -> Estimate:
    """Counted in one statement."""
    pairs = [one for one in asked if isinstance(one, Has)]
    if not pairs:
        return Estimate(None, records, records)
    counts, bindings = list[str](), list[filtering.Binding]()
    for pair in pairs:
        sql, bound = filtering.holders(collection, pair)
        counts.append(f"(SELECT count(*) FROM (SELECT 1 {sql} LIMIT ?))")
        bindings += [*bound, max(filtering.COUNTED, records // 10)]
    [found] = rows(connection, f"SELECT {', '.join(counts)}", bindings)
    return min((Estimate(pair, count, records) for pair, count in zip(pairs, found, strict=True)), key=_size)


def _size(one: Estimate) -> int:
    return one.count
