"""Batches written to the tables of their collections: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homing.errors import DimensionMismatch, ModelMismatch
from homing.stores.arguments import Batch
from homing.stores.lance.catalog import Catalog, Entry, new_table_name
from homing.stores.lance.database import Database
from homing.stores.lance.indexes import words_index
from homing.stores.lance.models import Room, room
from homing.stores.lance.reading import pages
from homing.stores.lance.rows import STORED, Vectors, rows_of, schema_for, serving, spaces_of, texts_of, vectors_of
from homing.stores.lance.table import Table, any_of

INDEXED_AT_ONCE = 1_000
"""Records of a new collection from which on its words are indexed before the call returns."""


@dataclass(frozen=True, slots=True)
class _Plan:
    batch: Batch
    entry: Entry
    table: Table | None
    """None where the collection is new."""
    kept: Mapping[str, Vectors]
    """By id, vectors that records of the batch have already and keep."""
    room: Room | None
    """What must be done to the columns first."""


class Writer:
    """Writes for a store that holds the lock."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog

    def write(self, batches: list[Batch]) -> list[Table]:
        """Write the batches, one for each collection; returns the tables that were written, the catalog's included."""
        self._catalog.settle()
        self._catalog.check_free(batch.collection for batch in batches)
        plans = [self._plan(batch) for batch in batches]
        if len(plans) == 1 and plans[0].table is not None and plans[0].room is None:
            return [self._write(plans[0])]
        with self._catalog.as_one([plan.entry for plan in plans]):
            tables = [self._write(plan) for plan in plans]
        return [*tables, self._database.mark]

    def _plan(self, batch: Batch) -> _Plan:
        entry = self._catalog.entries().get(batch.collection)
        if entry is None:
            return _Plan(batch, Entry(batch.collection, new_table_name(batch.collection), "creating"), None, {}, None)
        table = self._catalog.open(entry)
        kept = _kept(table, batch)
        writing = Entry(batch.collection, entry.table, "writing", table.version)
        return _Plan(batch, writing, table, kept, _room(table, batch, kept))

    def _write(self, plan: _Plan) -> Table:
        batch, table = plan.batch, plan.table
        if table is None:
            return self._create(plan.entry.table, batch)
        if plan.room is not None:
            plan.room.make(table)
        table.upsert(rows_of(batch, table.schema, plan.kept))
        return table

    def _create(self, name: str, batch: Batch) -> Table:
        schema = schema_for(batch)
        rows = rows_of(batch, schema)
        if len(rows) >= INDEXED_AT_ONCE:
            table = self._database.create(name, schema, rows)
            table.add_index(words_index())
            return table
        # LanceDB weighs the words of indexed rows by what the index knew when it was made. One that begins with a few
        # rows would weigh those as if they were all; while it is empty, all rows are weighed alike.
        table = self._database.create(name, schema)
        table.add_index(words_index())
        table.upsert(rows)
        return table


def _room(table: Table, batch: Batch, kept: Mapping[str, Vectors]) -> Room | None:
    """What a batch needs of the columns. Refuses to mix models."""
    if not batch.embedded:
        return None
    width = int(batch.vectors.shape[1])
    served = serving(table.schema)
    if served is not None and (served.model, served.dimensions) == (batch.model, width):
        return None
    staying = f"NOT {any_of('id', [record.id for record in batch.records if record.id not in kept])}"
    if served is not None and table.has(f"{served.held} AND {staying}"):
        if served.model == batch.model:
            raise DimensionMismatch(
                f"collection {batch.collection!r} holds vectors of {served.dimensions} dimensions, got {width}; "
                "use the model it was embedded with, or embed it again",
                details={"collection": batch.collection, "expected": served.dimensions, "actual": width},
            )
        raise ModelMismatch(
            f"collection {batch.collection!r} holds vectors of {served.model!r}, got vectors of {batch.model!r}; "
            "vectors of two models cannot be compared: use that model, or embed the collection again",
            details={"collection": batch.collection, "expected": served.model, "actual": batch.model},
        )
    return room(table, batch.model, width, serves=True, staying=staying)


def _kept(table: Table, batch: Batch) -> dict[str, Vectors]:
    """By id, the vectors of records that are written without one and have the text and keywords that they had."""
    held = spaces_of(table.schema)
    given = {record.id: record for record in batch.records if record.embedding is None}
    if not held or not given:
        return {}
    condition = " OR ".join(space.held for space in held)
    columns = [*STORED, "text_hash", *(name for space in held for name in space.columns)]
    kept: dict[str, Vectors] = {}
    for rows in pages(table, list(given), columns, f" AND ({condition})"):
        vectors = {space: vectors_of(rows, space.column) for space in held}
        for at, row in enumerate(rows.drop_columns([space.column for space in held]).to_pylist()):
            record = given[row["id"]]
            if texts_of(row) == (record.text, record.keywords):
                kept[record.id] = {
                    space.column: vector
                    for space in held
                    if (vector := vectors[space][at]) is not None and row[space.hashes] == row["text_hash"]
                }
    return kept
