"""The nearest rows: an exact scan, or candidates from the index, in either case compared exactly at the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from homing.errors import DimensionMismatch, ModelMismatch
from homing.stores.lance.engine import ArrowTable, Reader, run
from homing.stores.lance.reading import pages
from homing.stores.lance.rows import Space, matrix_of, serving
from homing.stores.lance.table import Table
from homing.vectors import Vector

CANDIDATES = 72
"""Rows of an index that are compared exactly, at least."""

Found = tuple[float, dict[str, Any]]
"""A cosine, and the row that has it."""


def search(
    table: Table, collection: str, query: Vector, limit: int, condition: str | None, model: str, columns: list[str]
) -> list[Found]:
    """The nearest `limit` rows by cosine and then id. Refuses a query that cannot be compared with what is there."""
    reach = limit + 8
    while True:
        space, rows = run(_asked(table.reader, query, model, reach, condition, columns))
        if space is None:
            return []
        if rows is None:
            _refuse(table, space, collection, query, model)
            return []
        found = _by_cosine(rows, space, query)
        if len(rows) < reach or found[-1][0] != found[limit - 1][0]:
            return _unique(found)[:limit]
        # The last match ties with rows that were cut off: which of them belong to the answer is decided by their ids.
        reach *= 8


def measure(table: Table, collection: str, query: Vector | None, ids: list[str]) -> dict[str, float | None]:
    """The cosines of the records that exist, by id; None where there is no vector, or no query."""
    space = None if query is None else serving(table.schema)
    if query is not None and space is not None and len(query) != space.dimensions:
        _refuse(table, space, collection, query, "")
        space = None
    if query is None or space is None:
        return dict.fromkeys(name for page in pages(table, ids, ["id"]) for name in page["id"].to_pylist())
    found: dict[str, float | None] = {}
    for page in pages(table, ids, ["id", space.column]):
        found.update(dict.fromkeys(page["id"].to_pylist()))
        embedded = page.filter(page[space.column].is_valid())
        found.update((row["id"], cosine) for cosine, row in _by_cosine(embedded, space, query))
    return found


async def _asked(
    reader: Reader, query: Vector, model: str, reach: int, condition: str | None, columns: list[str]
) -> tuple[Space | None, ArrowTable | None]:
    """What the table's vectors are, and the rows that were found among them, if the query can be compared."""
    space = serving(await reader.schema())
    if space is None or len(query) != space.dimensions or model not in ("", space.model):
        return space, None
    probes = space.probes
    if probes and condition is not None:
        # What fulfils a rare condition is spread over more partitions than the query's nearest ones.
        share = await reader.count_rows(condition) / max(1, await reader.count_rows())
        probes = math.ceil(probes / max(share, 1e-4))
    asked = nearest(reader, space.column, query, reach, probes, condition)
    return space, await asked.select([*columns, space.column, "_distance"]).to_arrow()


def nearest(reader: Reader, column: str, query: Vector, reach: int, probes: int, condition: str | None = None) -> Any:
    """A search for the nearest rows; without probes an exact one."""
    builder = reader.query().nearest_to(query).column(column).distance_type("cosine").limit(reach)
    if condition is not None:
        builder = builder.where(condition)
    if not probes:
        return builder.bypass_vector_index()
    # The index holds rounded vectors. Some more of its rows than are wanted are compared exactly, in full.
    builder = builder.nprobes(probes).refine_factor(max(2, math.ceil(CANDIDATES / reach)))
    # Where the probed partitions have too few rows that fulfil the condition, the others are read too.
    return builder if condition is None else builder.maximum_nprobes(0)


def _refuse(table: Table, space: Space, collection: str, query: Vector, model: str) -> None:
    if not table.has(space.held):
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


def _by_cosine(rows: ArrowTable, space: Space, query: Vector) -> list[Found]:
    """Rows, all of which have a vector, by cosine and then id."""
    # Summed row by row, so that equal vectors get equal cosines wherever they stand, and ties are ties.
    stored = matrix_of(rows, space.column).astype(np.float64)
    cosines = np.minimum(1.0, (stored * query.astype(np.float64)).sum(axis=1)).tolist()
    found = zip(cosines, rows.drop_columns([space.column]).to_pylist(), strict=True)
    return sorted(found, key=lambda one: (-one[0], one[1]["id"]))


def _unique(found: list[Found]) -> list[Found]:
    """A key that is there twice (written around us) is one match."""
    best: dict[str, Found] = {}
    for one in found:
        best.setdefault(one[1]["id"], one)
    return list(best.values())
