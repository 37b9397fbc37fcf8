"""Batches of records written to the tables of their collections, all of them or none, and vectors of several models.

Each model has two columns in the collection's table: its vectors, and the hash of the text that each was made of. A row
is written as a whole, so a text and its vectors change in one commit. Which model serves the collection is a note on
its column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from homing.errors import InvalidArgument
from homing.stores.arguments import Batch, check_fits, check_width
from homing.stores.lance.catalog import Catalog, Entry, new_table_name
from homing.stores.lance.database import Database, Table, any_of, words_index
from homing.stores.lance.engine import ArrowTable, arrow
from homing.stores.lance.reading import pages
from homing.stores.lance.rows import (
    SERVES,
    STORED,
    Space,
    Vectors,
    find_space,
    new_space,
    rows_of,
    schema_for,
    serving,
    spaces_of,
    texts_of,
    vector_columns,
    vectors_of,
)
from homing.stores.store import NewVector

INDEXED_AT_ONCE = 1_000
"""Records of a new collection from which on its words are indexed before the call returns."""
UNCHANGED = "target.text_hash = source.text_hash AND target.words = source.words AND target.metadata = source.metadata"
"""What must hold of a row that is written back with one more vector: nobody wrote it meanwhile, not even another
machine, which our lock does not reach."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What must be done to the columns of a table before vectors of a model can be written."""

    space: Space
    new: bool
    gone: tuple[Space, ...]

    def apply(self, table: Table) -> None:
        """Do it. The lock must be held; see `Catalog.as_one`."""
        if self.gone:
            table.drop_columns([name for space in self.gone for name in space.columns])
        if self.new:
            table.add_columns(self.space.fields)
        else:
            table.note({self.space.column: {SERVES: "yes"}})


@dataclass(frozen=True, slots=True)
class _Plan:
    batch: Batch
    entry: Entry
    table: Table | None
    """None where the collection is new."""
    kept: Mapping[str, Vectors]
    """By id, vectors that records of the batch have already and keep."""
    columns: ColumnChange | None
    """What must be done to the columns first."""


def write(catalog: Catalog, batches: list[Batch]) -> list[Table]:
    """Write the batches, one for each collection; returns the tables that were written, the catalog's included.

    The lock must be held.
    """
    entries = catalog.settle(batch.collection for batch in batches)
    plans = [_planned(catalog, batch, entries.get(batch.collection)) for batch in batches]
    if len(plans) == 1 and plans[0].table is not None and plans[0].columns is None:
        return [_write(catalog.database, plans[0])]
    with catalog.as_one([plan.entry for plan in plans]):
        tables = [_write(catalog.database, plan) for plan in plans]
    return [*tables, catalog.database.mark]


def put(catalog: Catalog, entry: Entry, model: str, given: Sequence[NewVector]) -> set[str]:
    """Give records vectors of one width, where they still have the text that was embedded; returns whose got one.

    The lock must be held.
    """
    table = catalog.pinned(entry)
    served = serving(table.schema)
    serves = served is None or not table.has(served.held)
    needed = column_change(table, model, len(given[0].embedding), serves=serves)
    new = {one.id: one for one in given}
    rows = _waiting(table, model, new)
    if not len(rows):
        return set()
    if needed is None:
        return _put(table, model, rows, new)
    with catalog.as_one([replace(entry, state="writing", version=table.version)]):
        needed.apply(table)
        return _put(table, model, rows, new)


def serve(table: Table, collection: str, model: str) -> None:
    """Search the vectors of a model from now on, in one commit. The lock must be held."""
    space = find_space(table.schema, model)
    if space is None or not table.has(space.held):
        raise InvalidArgument(f"collection {collection!r} has no vectors of {model!r}; embed it with that model first")
    if not space.serves:
        others = {other.column: {SERVES: ""} for other in spaces_of(table.schema) if other.serves}
        table.note({**others, space.column: {SERVES: "yes"}})


def discard(table: Table, collection: str, model: str) -> int:
    """Let go of the vectors of a model, in one commit; returns how many there were. The lock must be held."""
    space = find_space(table.schema, model)
    if space is None:
        return 0
    count = table.count(space.held)
    if count and space.serves:
        raise InvalidArgument(f"{model!r} serves collection {collection!r}; let another model serve it first")
    table.drop_columns(space.columns)
    return count


def column_change(table: Table, model: str, width: int, *, serves: bool, staying: str = "true") -> ColumnChange | None:
    """What vectors of a model need; None where they can be written at once.

    Where they are to serve, the model that did so has none left, and its columns go. `staying` is the condition on rows
    whose vectors are not about to be replaced.
    """
    held = spaces_of(table.schema)
    own = find_space(table.schema, model)
    gone = [space for space in held if serves and space.serves and space != own]
    if own is not None and own.dimensions != width:
        if table.has(f"{own.held} AND {staying}"):
            check_width(model, own.dimensions, width)
        gone.append(own)
        own = None
    if own is None:
        return ColumnChange(new_space(model, width, serves=serves), True, tuple(gone))
    return ColumnChange(own, False, tuple(gone)) if serves and not own.serves else None


def _planned(catalog: Catalog, batch: Batch, entry: Entry | None) -> _Plan:
    if entry is None:
        return _Plan(batch, Entry(batch.collection, new_table_name(batch.collection), "creating"), None, {}, None)
    table = catalog.pinned(entry)
    kept = _kept(table, batch)
    writing = Entry(batch.collection, entry.table, "writing", table.version)
    return _Plan(batch, writing, table, kept, _batch_columns(table, batch, kept))


def _write(database: Database, plan: _Plan) -> Table:
    batch, table = plan.batch, plan.table
    if table is None:
        return _created(database, plan.entry.table, batch)
    if plan.columns is not None:
        plan.columns.apply(table)
    table.upsert(rows_of(batch, table.schema, plan.kept))
    return table


def _created(database: Database, name: str, batch: Batch) -> Table:
    schema = schema_for(batch)
    rows = rows_of(batch, schema)
    # LanceDB weighs the words of indexed rows by what the index knew when it was made. One that begins with a few rows
    # would weigh those as if they were all; while it is empty, all rows are weighed alike.
    many = len(rows) >= INDEXED_AT_ONCE
    table = database.create(name, schema, rows if many else None)
    table.add_index(words_index())
    if not many:
        table.upsert(rows)
    return table


def _batch_columns(table: Table, batch: Batch, kept: Mapping[str, Vectors]) -> ColumnChange | None:
    """What a batch needs of the columns. Refuses to mix models."""
    if not batch.embedded:
        return None
    width = int(batch.vectors.shape[1])
    served = serving(table.schema)
    if served is not None and (served.model, served.dimensions) == (batch.model, width):
        return None
    staying = f"NOT {any_of('id', [record.id for record in batch.records if record.id not in kept])}"
    if served is not None and table.has(f"{served.held} AND {staying}"):
        check_fits(batch.collection, served.model, served.dimensions, batch.model, width)
    return column_change(table, batch.model, width, serves=True, staying=staying)


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


def _waiting(table: Table, model: str, new: Mapping[str, NewVector]) -> ArrowTable:
    """The rows of those records that still have the text that was embedded and no vector of it, each id once."""
    space = find_space(table.schema, model)
    condition = "" if space is None else f" AND {space.lacking}"
    rows = arrow().concat_tables(pages(table, list(new), None, condition))
    chosen: dict[str, int] = {}
    for at, (name, known) in enumerate(zip(rows["id"].to_pylist(), rows["text_hash"].to_pylist(), strict=True)):
        if new[name].hash == known:
            chosen.setdefault(name, at)
    return rows.take(arrow().array(list(chosen.values()), arrow().int64()))


def _put(table: Table, model: str, rows: ArrowTable, new: Mapping[str, NewVector]) -> set[str]:
    """Write rows back with the new vectors."""
    space, schema = find_space(table.schema, model), table.schema
    assert space is not None
    ids = rows["id"].to_pylist()
    vectors = vector_columns(space, [new[name].embedding for name in ids], rows["text_hash"].to_pylist())
    columns = {name: vectors[name] if name in vectors else rows[name] for name in schema.names}
    if table.replace(arrow().table(columns, schema=schema), UNCHANGED) == len(ids):
        return set(ids)
    # Another machine was faster with some of them.
    found = pages(table, ids, ["id"], f" AND {space.held}")
    return {name for page in found for name in page["id"].to_pylist()}
