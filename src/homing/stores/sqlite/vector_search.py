"""The nearest records: candidates from the codes in memory, then compared exactly.

Without a filter all codes are scored. A selective filter names its records first and only those are scored. A broad one
scores all and asks of the best whether they pass, more and more of them until there are enough or none is left, so a
record that passes is found however far down it is.
"""

from __future__ import annotations

import apsw
import numpy as np

from homing.stores.filters import Filter
from homing.stores.sqlite import filtering
from homing.stores.sqlite.codes import Keys, Query, nearest
from homing.stores.sqlite.estimates import Estimates
from homing.stores.sqlite.matrices import Snapshot
from homing.stores.sqlite.vectors import cosines
from homing.vectors import Vector

SELECTIVE = 2_000
"""Records up to which a filter is always selective."""
SELECTIVE_SHARE = 20
"""Beyond that, one in so many: naming a record costs about as much as scoring twenty."""
FIRST_ASKED = 320
"""Candidates of a broad filter that are asked at first, beside eight for each match wanted."""
ASKED_ONE_BY_ONE = 8_192
"""Candidates of a broad filter after which all that pass are named instead."""


def search(
    connection: apsw.Connection,
    snapshot: Snapshot,
    vector: Vector,
    limit: int,
    asked: Filter,
    estimates: Estimates,
) -> list[tuple[float, str]]:
    """The nearest as (distance, id), `limit` of them if so many exist, nearest first; ties by id."""
    query = Query.of(vector)
    if asked:
        records = _filtered(connection, snapshot, query, limit, asked, estimates)
    else:
        records = snapshot.codes.records[query.candidates(snapshot.codes, snapshot.scores(query), limit)]
    state = snapshot.state
    near = cosines(connection, state.space, state.dimensions, records.tolist(), vector)
    return sorted((max(0.0, 1.0 - cosine), name) for name, cosine in near.items())[:limit]


def _filtered(
    connection: apsw.Connection, snapshot: Snapshot, query: Query, limit: int, asked: Filter, estimates: Estimates
) -> Keys:
    collection = snapshot.state.collection
    estimate = estimates.of(connection, collection, snapshot.state.live, asked)
    if estimate.count > max(SELECTIVE, snapshot.codes.count // SELECTIVE_SHARE):
        passed = _one_by_one(connection, snapshot, query, limit, asked)
        if passed is not None:
            return passed
    named = filtering.matching(connection, collection, asked, estimate.pair)
    chosen = snapshot.codes.take(snapshot.positions(named))
    return chosen.records[query.candidates(chosen, query.scores(chosen), limit)]


def _one_by_one(
    connection: apsw.Connection, snapshot: Snapshot, query: Query, limit: int, asked: Filter
) -> Keys | None:
    """The candidates that pass, asking each record from the nearest on; None where too few do."""
    codes, values = snapshot.codes, snapshot.scores(query)
    doubt = query.doubt(codes)
    left, passed, portion = values.copy(), np.empty(0, np.int64), FIRST_ASKED + 8 * limit
    while portion <= max(ASKED_ONE_BY_ONE, FIRST_ASKED + 8 * limit):
        best = nearest(left, portion)
        left[best] = -np.inf
        records = codes.records[best]
        kept = filtering.passing(connection, snapshot.state.collection, asked, records)
        passed = np.concatenate([passed, best[np.isin(records, kept)]])
        # Whoever was not asked yet scores no more than the last who was.
        if not len(best) or (len(passed) >= limit and values[passed[limit - 1]] - values[best[-1]] >= 2 * doubt):
            return codes.records[passed[query.candidates(codes.take(passed), values[passed], limit)]]
        portion *= 4
    return None
