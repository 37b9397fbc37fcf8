"""The nearest rows: an exact scan, or candidates from the index, in either case compared exactly at the end."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np

from homing.stores.arguments import check_query
from homing.stores.lance.database import Table
from homing.stores.lance.engine import ArrowTable, Reader, part, run
from homing.stores.lance.reading import Found, pages
from homing.stores.lance.rows import INDEXED, PROBES, Space, matrix_of, serving
from homing.vectors import Matrix, Vector, normalise

logger = logging.getLogger(__name__)

CANDIDATES = 72
"""Rows of an index that are compared exactly, at least."""
RECALL = 0.995
"""Share of the true ten nearest that must be found when it is tried out, for at least 0.98 with any queries."""
PARTITION = 4_096
"""Rows that a partition should have."""
QUERIES = 64
GROWTH = 2
"""How many times larger a table must be for its vectors to be indexed anew."""
TOP = 10


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


def index_is_due(table: Table, from_rows: int) -> bool:
    """Whether a table has grown so much, to so many rows at least, that its vectors should be indexed (anew)."""
    space = serving(table.schema)
    return space is not None and table.count() >= max(from_rows, GROWTH * space.indexed)


def build_index(table: Table, from_rows: int) -> None:
    """Index the vectors and find out how to read the index. Others may write; searches scan until it is ready.

    It has one byte per dimension in partitions. Measured at 100,000 vectors of 384 dimensions: with the candidates
    compared exactly it finds what a full scan finds in an eighth of the time, takes a quarter of the room of full
    vectors, and is built in seconds. Product quantization and single bits lose matches; a graph finds no more and takes
    minutes to build.

    How many partitions a search must read differs from corpus to corpus, so it is tried out on the corpus itself, and
    where no number reaches the wanted recall the exact scan stays.
    """
    space = serving(table.schema)
    if space is None:
        return
    rows = table.count()
    vectors = table.count(space.held)
    probes = 0
    if vectors >= from_rows:
        partitions = max(2, vectors // PARTITION)
        with table.database.writing():
            table.note({space.column: {PROBES: "0"}})
        kind = part("index").IvfSq(distance_type="cosine", num_partitions=partitions)
        table.handle.create_index(space.column, config=kind, replace=True)
        probes = _calibrated(table, space.column, partitions)
    with table.database.writing():
        table.note({space.column: {PROBES: str(probes), INDEXED: str(rows)}})
    logger.info("%s: %d vectors indexed, searches read %d partitions", table.name, vectors, probes)


def _calibrated(table: Table, column: str, partitions: int) -> int:
    """The fewest partitions that must be read for the wanted recall; 0 where all of them are not enough."""
    # What is written meanwhile must not count as missed.
    reader = table.frozen_reader()
    queries = _queries(reader, column)
    truth = [_ids(reader, column, query, 0) for query in queries]
    probes = 4
    while True:
        probes = min(probes, partitions)
        found = [_ids(reader, column, query, probes) for query in queries]
        recall = np.mean([len(true & near) / len(true) for true, near in zip(truth, found, strict=True)])
        if recall >= RECALL:
            return probes
        if probes == partitions:
            return 0
        probes += (probes + 1) // 2


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


def _refuse(table: Table, space: Space, collection: str, query: Vector, model: str) -> None:
    if table.has(space.held):
        check_query(collection, space.model, space.dimensions, len(query), model)


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


def _queries(reader: Reader, column: str) -> Matrix:
    """Vectors like those a search brings: some are as far from all others as those that are there, some farther."""
    chance = np.random.default_rng(0)
    offsets = sorted(set(chance.choice(run(reader.count_rows()), size=4 * QUERIES).tolist()))
    rows = matrix_of(run(reader.take_offsets(offsets).select([column]).to_arrow()), column)
    rows = rows[chance.permutation(len(rows))[:QUERIES]]
    noise = normalise(chance.standard_normal(rows.shape).astype(np.float32))
    return normalise(rows + np.linspace(0, 1, len(rows), dtype=np.float32)[:, np.newaxis] * noise)


def _ids(reader: Reader, column: str, query: Vector, probes: int) -> set[str]:
    """The nearest, without the very nearest: that one may be the row which the query was made from."""
    found = run(nearest(reader, column, query, TOP + 1, probes).select(["id", "_distance"]).to_arrow())
    return set(found["id"].to_pylist()[1:])
