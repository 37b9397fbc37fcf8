"""The nearest records: candidates from the codes in memory, then compared exactly.

Without a filter all codes are scored. A selective filter names its records first and only those are scored. A broad one
scores all and asks of the best whether they pass, more and more of them until there are enough or none is left, so a
record that passes is found however far down it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apsw
import numpy as np

from homing.stores.attributes import Filter
from homing.stores.sqlite import filtering
from homing.stores.sqlite.codes import Keys, nearest, scores
from homing.stores.sqlite.matrices import Snapshot
from homing.stores.sqlite.rows import rows_of_each
from homing.stores.sqlite.schema import vector_table
from homing.vectors import Vector

SELECTIVE = 2_000
"""Records up to which a filter is always selective."""
SELECTIVE_SHARE = 20
"""Beyond that, one in so many: naming a record costs about as much as scoring twenty."""
ASKED_ONE_BY_ONE = 4_096
"""Candidates of a broad filter after which all that pass are named instead."""


@dataclass(frozen=True, slots=True)
class Near:
    """A record and its exact distance."""

    record: int
    distance: float


def search(connection: apsw.Connection, snapshot: Snapshot, query: Vector, limit: int, asked: Filter) -> list[Near]:
    """At least `limit` of the nearest, if so many exist, by distance; more where the last ones tie."""
    enough = 4 * limit + 32
    if not asked:
        records = snapshot.codes.records[nearest(snapshot.scores(query), enough)]
    else:
        records = _filtered(connection, snapshot, query, enough, asked)
    return _exact(connection, snapshot.state.space, query, records)


def _filtered(connection: apsw.Connection, snapshot: Snapshot, query: Vector, enough: int, asked: Filter) -> Keys:
    collection = snapshot.state.collection
    few = max(SELECTIVE, snapshot.codes.count // SELECTIVE_SHARE)
    named = filtering.matching(connection, collection, asked, few)
    if named is not None:
        return _best_of(snapshot, query, enough, named)
    passed = np.empty(0, np.int64)
    for records in _portions(snapshot, query, enough):
        passed = np.concatenate([passed, filtering.passing(connection, collection, asked, records)])
        if len(passed) >= enough or len(records) == 0:
            return passed
    every = filtering.matching(connection, collection, asked, snapshot.codes.count)
    assert every is not None
    return _best_of(snapshot, query, enough, every)


def _best_of(snapshot: Snapshot, query: Vector, enough: int, records: Keys) -> Keys:
    chosen = snapshot.codes.take(snapshot.positions(records))
    return chosen.records[nearest(scores(chosen, query), enough)]


def _portions(snapshot: Snapshot, query: Vector, enough: int) -> Iterator[Keys]:
    """The records from the nearest on, in growing portions; an empty one says that there are no more."""
    values = snapshot.scores(query)
    reach = 4 * enough
    while reach <= max(ASKED_ONE_BY_ONE, 4 * enough):
        best = nearest(values, reach)
        values[best] = -np.inf
        yield snapshot.codes.records[best]
        if not len(best):
            return
        reach *= 4


def _exact(connection: apsw.Connection, space: int, query: Vector, records: Keys) -> list[Near]:
    found = rows_of_each(
        connection, f"SELECT record, embedding FROM {vector_table(space)} WHERE record = ?", records.tolist()
    )
    if not found:
        return []
    stored = np.frombuffer(b"".join(blob for _, blob in found), "<f4").reshape(len(found), -1)
    # Summed row by row, so that equal vectors get equal distances wherever they stand, and ties are ties.
    cosines = (stored.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    distances = np.maximum(0.0, 1.0 - cosines)
    near = [Near(key, distance) for (key, _), distance in zip(found, distances.tolist(), strict=True)]
    return sorted(near, key=lambda near: near.distance)
