"""The nearest rows: an exact scan, or candidates from the index, in either case compared exactly at the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from homing.records import Match
from homing.stores.lance.engine import Handle
from homing.stores.lance.rows import SHOWN, VECTOR, Space, match_of, matrix_of
from homing.stores.lance.table import Table
from homing.vectors import Vector

CANDIDATES = 72
"""Rows of an index that are compared exactly, at least."""
FOUND = [*SHOWN, VECTOR, "_distance"]


def search(
    table: Table, space: Space, collection: str, query: Vector, limit: int, condition: str | None
) -> list[Match]:
    """The nearest `limit` rows by distance and then id."""
    probes = _probes(table, space, condition)
    reach = limit + 8
    while True:
        rows = nearest(table.handle, query, reach, probes, condition).select(FOUND).to_arrow()
        matches = _matches(rows, collection, query)
        if len(rows) < reach or matches[-1].distance != matches[limit - 1].distance:
            return _unique(matches)[:limit]
        # The last match ties with rows that were cut off: which of them belong to the answer is decided by their ids.
        reach *= 8


def nearest(handle: Handle, query: Vector, reach: int, probes: int, condition: str | None = None) -> Any:
    """A search for the nearest rows; without probes an exact one."""
    builder = handle.search(query, vector_column_name=VECTOR).distance_type("cosine").limit(reach)
    if condition is not None:
        builder = builder.where(condition, prefilter=True)
    if not probes:
        return builder.bypass_vector_index()
    # The index holds rounded vectors. Some more of its rows than are wanted are compared exactly, in full.
    builder = builder.nprobes(probes).refine_factor(max(2, math.ceil(CANDIDATES / reach)))
    # Where the probed partitions have too few rows that fulfil the condition, the others are read too.
    return builder if condition is None else builder.maximum_nprobes(0)


def _probes(table: Table, space: Space, condition: str | None) -> int:
    if not space.probes or condition is None:
        return space.probes
    # What fulfils a rare condition is spread over more partitions than the query's nearest ones.
    share = table.count(condition) / max(1, table.count())
    return math.ceil(space.probes / max(share, 1e-4))


def _matches(rows: Any, collection: str, query: Vector) -> list[Match]:
    # Summed row by row, so that equal vectors get equal distances wherever they stand, and ties are ties.
    cosines = (matrix_of(rows).astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    distances = np.maximum(0.0, 1.0 - cosines).tolist()
    found = [
        match_of(row, collection, distance=distance)
        for row, distance in zip(rows.drop_columns([VECTOR]).to_pylist(), distances, strict=True)
    ]
    return sorted(found, key=lambda match: (match.distance, match.id))


def _unique(matches: list[Match]) -> list[Match]:
    """A key that is there twice (written around us) is one match."""
    best: dict[str, Match] = {}
    for match in matches:
        best.setdefault(match.id, match)
    return list(best.values())
