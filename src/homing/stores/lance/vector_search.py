"""The nearest rows: an exact scan, or candidates from the index, in either case compared exactly at the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from homing.errors import DimensionMismatch, ModelMismatch
from homing.records import Match
from homing.stores.lance.engine import ArrowTable, Reader, run
from homing.stores.lance.rows import SHOWN, VECTOR, Space, match_of, matrix_of, space_of
from homing.stores.lance.table import Table
from homing.vectors import Vector

CANDIDATES = 72
"""Rows of an index that are compared exactly, at least."""
FOUND = [*SHOWN, VECTOR, "_distance"]


def search(
    table: Table, collection: str, query: Vector, limit: int, condition: str | None, model: str = ""
) -> list[Match]:
    """The nearest `limit` rows by distance and then id. Refuses a query that cannot be compared with what is there."""
    reach = limit + 8
    while True:
        space, rows = run(_asked(table.reader, query, model, reach, condition))
        if space is None:
            return []
        if rows is None:
            _refuse(table, space, collection, query, model)
            return []
        matches = _matches(rows, collection, query)
        if len(rows) < reach or matches[-1].distance != matches[limit - 1].distance:
            return _unique(matches)[:limit]
        # The last match ties with rows that were cut off: which of them belong to the answer is decided by their ids.
        reach *= 8


async def _asked(
    reader: Reader, query: Vector, model: str, reach: int, condition: str | None
) -> tuple[Space | None, ArrowTable | None]:
    """What the table's vectors are, and the rows that were found among them, if the query can be compared."""
    space = space_of(await reader.schema())
    if space is None or len(query) != space.dimensions or model not in ("", space.model):
        return space, None
    probes = space.probes
    if probes and condition is not None:
        # What fulfils a rare condition is spread over more partitions than the query's nearest ones.
        share = await reader.count_rows(condition) / max(1, await reader.count_rows())
        probes = math.ceil(probes / max(share, 1e-4))
    return space, await nearest(reader, query, reach, probes, condition).select(FOUND).to_arrow()


def nearest(reader: Reader, query: Vector, reach: int, probes: int, condition: str | None = None) -> Any:
    """A search for the nearest rows; without probes an exact one."""
    builder = reader.query().nearest_to(query).column(VECTOR).distance_type("cosine").limit(reach)
    if condition is not None:
        builder = builder.where(condition)
    if not probes:
        return builder.bypass_vector_index()
    # The index holds rounded vectors. Some more of its rows than are wanted are compared exactly, in full.
    builder = builder.nprobes(probes).refine_factor(max(2, math.ceil(CANDIDATES / reach)))
    # Where the probed partitions have too few rows that fulfil the condition, the others are read too.
    return builder if condition is None else builder.maximum_nprobes(0)


def _refuse(table: Table, space: Space, collection: str, query: Vector, model: str) -> None:
    if not table.count("text_hash IS NOT NULL"):
        return
    # Which model it is comes first: who hears that another one answers by now can ask with that.
    if model and model != space.model:
        raise ModelMismatch(
            f"collection {collection!r} holds vectors of {space.model!r}, the query comes from {model!r}; "
            "embed it with that model, or embed the collection again",
            details={"collection": collection, "expected": space.model, "actual": model},
        )
    raise DimensionMismatch(
        f"collection {collection!r} holds vectors of {space.dimensions} dimensions, the query has {len(query)}; "
        "embed it with the model of the collection",
        details={"expected": space.dimensions, "actual": len(query)},
    )


def _matches(rows: ArrowTable, collection: str, query: Vector) -> list[Match]:
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
