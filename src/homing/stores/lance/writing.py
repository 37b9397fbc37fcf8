"""Batches written to the tables of their collections: all of them, or none."""

from __future__ import annotations

from dataclasses import dataclass

from homing.errors import DimensionMismatch, ModelMismatch
from homing.stores.batches import Batch
from homing.stores.lance.catalog import Catalog, Entry, new_table_name
from homing.stores.lance.database import Database
from homing.stores.lance.indexes import words_index
from homing.stores.lance.rows import VECTOR, rows_of, schema_for, space_of, vector_field
from homing.stores.lance.table import Table, any_of

EMBEDDED = "text_hash IS NOT NULL"


@dataclass(frozen=True, slots=True)
class _Plan:
    batch: Batch
    entry: Entry
    table: Table | None
    """None where the collection is new."""
    new_space: bool
    """Whether the vector column is made, or made anew."""
    replaces: bool
    """Whether vectors of another model go with the old column."""


class Writer:
    """Writes for a store that holds the lock."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog

    def upsert(self, batches: list[Batch]) -> list[Table]:
        """Write the batches, one for each collection; returns the tables that were written, the catalog's included."""
        self._catalog.settle()
        self._catalog.check_free(batch.collection for batch in batches)
        plans = [self._plan(batch) for batch in batches]
        if len(plans) == 1 and plans[0].table is not None and not plans[0].replaces:
            return [self._write(plans[0])]
        # More than one commit: written down first, so that a kill between them can be undone.
        entries = [plan.entry for plan in plans]
        self._catalog.begin(entries)
        try:
            tables = [self._write(plan) for plan in plans]
            self._catalog.end(entries)
        except BaseException:
            self._catalog.undo(entries)
            raise
        return [*tables, self._database.mark]

    def _plan(self, batch: Batch) -> _Plan:
        entry = self._catalog.entries().get(batch.collection)
        if entry is None:
            made = Entry(batch.collection, new_table_name(batch.collection), "creating")
            return _Plan(batch, made, None, new_space=False, replaces=False)
        table = self._catalog.open(entry)
        new_space, replaces = _changes(table, batch)
        return _Plan(batch, Entry(batch.collection, entry.table, "writing", table.version), table, new_space, replaces)

    def _write(self, plan: _Plan) -> Table:
        batch, table = plan.batch, plan.table
        if table is None:
            schema = schema_for(batch)
            table = self._database.create(plan.entry.table, schema, rows_of(batch, schema))
            table.add_index(words_index())
            return table
        if plan.new_space:
            if VECTOR in table.schema.names:
                table.drop_column(VECTOR)
            table.add_column(vector_field(batch.model, batch.vectors.shape[1]))
        table.upsert(rows_of(batch, table.schema))
        return table


def _changes(table: Table, batch: Batch) -> tuple[bool, bool]:
    """Whether a batch needs another vector column, and whether vectors go with the old one. Refuses to mix models."""
    if not batch.embedded:
        return False, False
    space = space_of(table.schema)
    width = batch.vectors.shape[1]
    if space is None:
        return True, False
    if (space.model, space.dimensions) == (batch.model, width):
        return False, False
    there, ids = table.count(EMBEDDED), [record.id for record in batch.records]
    if there == table.count(f"{EMBEDDED} AND {any_of('id', ids)}"):
        return True, there > 0
    if space.model != batch.model:
        raise ModelMismatch(
            f"collection {batch.collection!r} holds vectors of {space.model!r}, got vectors of {batch.model!r}; "
            "vectors of two models cannot be compared: use that model, or embed the collection again",
            details={"collection": batch.collection, "expected": space.model, "actual": batch.model},
        )
    raise DimensionMismatch(
        f"collection {batch.collection!r} holds vectors of {space.dimensions} dimensions, got {width}; "
        "use the model it was embedded with, or embed it again",
        details={"collection": batch.collection, "expected": space.dimensions, "actual": width},
    )
