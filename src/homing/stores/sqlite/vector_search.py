"""The nearest records: candidates from the codes in memory, then compared exactly.

Without a filter all codes are scored. A selective filter names its records first and only those are scored. A broad one
scores all and asks of the best whether they pass, more and more of them until there are enough or none is left, so a
record that passes is found however far down it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw
import numpy as np

from homing.stores.attributes import Filter
from homing.stores.sqlite import filtering
from homing.stores.sqlite.codes import Keys, Query, nearest
from homing.stores.sqlite.matrices import Snapshot
from homing.stores.sqlite.rows import rows_of_each
from homing.stores.sqlite.schema import vector_table
from homing.vectors import Vector

SELECTIVE = 2_000
"""Records up to which a filter is always selective."""
SELECTIVE_SHARE = 20
"""Beyond that, one in so many: naming a record costs about as much as scoring twenty."""
SPARE = 8
"""Candidates beyond the limit, at least."""
ASKED_ONE_BY_ONE = 4_096
"""Candidates of a broad filter after which all that pass are named instead."""


@dataclass(frozen=True, slots=True)
class Near:
    """A record and its exact distance."""

    record: int
    distance: float


def search(connection: apsw.Connection, snapshot: Snapshot, vector: Vector, limit: int, asked: Filter) -> list[Near]:
    """At least `limit` of the nearest, if so many exist, by distance; more where the last ones tie."""
    query, enough = Query.of(vector), limit + SPARE
    if asked:
        records = _filtered(connection, snapshot, query, enough, asked)
    else:
        best = nearest(snapshot.scores(query), enough, query.margin(snapshot.codes))
        records = snapshot.codes.records[best]
    return _exact(connection, snapshot.state.space, vector, records)


def _filtered(connection: apsw.Connection, snapshot: Snapshot, query: Query, enough: int, asked: Filter) -> Keys:
    collection = snapshot.state.collection
    few = max(SELECTIVE, snapshot.codes.count // SELECTIVE_SHARE)
    if not filtering.is_selective(connection, collection, asked, few):
        passed = _one_by_one(connection, snapshot, query, enough, asked)
        if passed is not None:
            return passed
    chosen = snapshot.codes.take(snapshot.positions(filtering.matching(connection, collection, asked)))
    return chosen.records[nearest(query.scores(chosen), enough, query.margin(chosen))]


def _one_by_one(
    connection: apsw.Connection, snapshot: Snapshot, query: Query, enough: int, asked: Filter
) -> Keys | None:
    """The nearest records that pass, asking each from the nearest on; None where too few do."""
    values, margin = snapshot.scores(query), query.margin(snapshot.codes)
    left, passed, reach = values.copy(), np.empty(0, np.int64), 4 * enough
    while reach <= max(ASKED_ONE_BY_ONE, 4 * enough):
        best = nearest(left, reach)
        left[best] = -np.inf
        records = snapshot.codes.records[best]
        kept = filtering.passing(connection, snapshot.state.collection, asked, records)
        passed = np.concatenate([passed, best[np.isin(records, kept)]])
        last = values[best[-1]] if len(best) else -np.inf
        if not len(best) or (len(passed) >= enough and values[passed[enough - 1]] - margin >= last):
            return snapshot.codes.records[passed]
        reach *= 4
    return None


def _exact(connection: apsw.Connection, space: int, vector: Vector, records: Keys) -> list[Near]:
    found = rows_of_each(
        connection, f"SELECT record, embedding FROM {vector_table(space)} WHERE record = ?", records.tolist()
    )
    if not found:
        return []
    stored = np.frombuffer(b"".join(blob for _, blob in found), "<f4").reshape(len(found), -1)
    # Summed row by row, so that equal vectors get equal distances wherever they stand, and ties are ties.
    cosines = (stored.astype(np.float64) * vector.astype(np.float64)).sum(axis=1)
    distances = np.maximum(0.0, 1.0 - cosines)
    near = [Near(key, distance) for (key, _), distance in zip(found, distances.tolist(), strict=True)]
    return sorted(near, key=lambda near: near.distance)
