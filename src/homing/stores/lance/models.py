"""The vectors of several models side by side in one collection, of which one is searched.

Each model has two columns in the collection's table: its vectors, and the hash of the text that each was made of. A row
is written as a whole, so a text and its vectors change in one commit. Which model serves the collection is a note on
its column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from homing.errors import DimensionMismatch, InvalidArgument
from homing.stores.lance.catalog import Catalog, Entry
from homing.stores.lance.engine import ArrowTable, arrow, part
from homing.stores.lance.reading import pages
from homing.stores.lance.rows import SERVES, Space, new_space, serving, spaces_of, vector_columns
from homing.stores.lance.table import Table, quoted
from homing.stores.store import ModelInfo, NewVector

UNCHANGED = "target.text_hash = source.text_hash AND target.words = source.words AND target.metadata = source.metadata"
"""What must hold of a row that is written back with one more vector: nobody wrote it meanwhile, not even another
machine, which our lock does not reach."""


@dataclass(frozen=True, slots=True)
class Room:
    """What must be done to the columns of a table before vectors of a model can be written."""

    space: Space
    new: bool
    gone: tuple[Space, ...]

    def make(self, table: Table) -> None:
        """Do it. The lock must be held; see `Catalog.as_one`."""
        if self.gone:
            table.drop_columns([name for space in self.gone for name in space.columns])
        if self.new:
            table.add_columns(self.space.fields)
        else:
            table.note({self.space.column: {SERVES: "yes"}})


def room(table: Table, model: str, width: int, *, serves: bool, staying: str = "true") -> Room | None:
    """What vectors of a model need; None where they can be written at once.

    Where they are to serve, the model that did so has none left, and its columns go. `staying` is the condition on rows
    whose vectors are not about to be replaced.
    """
    held = spaces_of(table.schema)
    own = next((space for space in held if space.model == model), None)
    gone = [space for space in held if serves and space.serves and space != own]
    if own is not None and own.dimensions != width:
        if table.has(f"{own.held} AND {staying}"):
            raise DimensionMismatch(
                f"the vectors of {model!r} that are there have {own.dimensions} dimensions, not {width}; "
                "give the model an identity that says its width",
                details={"expected": own.dimensions, "actual": width},
            )
        gone.append(own)
        own = None
    if own is None:
        return Room(new_space(model, width, serves=serves), True, tuple(gone))
    return Room(own, False, tuple(gone)) if serves and not own.serves else None


def infos(table: Table) -> list[ModelInfo]:
    """The models that a table holds vectors of, the one that serves the collection first."""
    counted = [(space, table.count(space.held)) for space in spaces_of(table.schema)]
    return [ModelInfo(space.model, space.dimensions, count, space.serves) for space, count in counted if count]


def served_model(table: Table) -> str:
    """The model that serves the collection; empty where nothing has a vector of it."""
    space = serving(table.schema)
    return space.model if space is not None and table.has(space.held) else ""


def pending(table: Table) -> int:
    """How many records have no vector of the model that serves the collection."""
    space = serving(table.schema)
    return table.count() if space is None else table.count(space.lacking)


def missing(table: Table, model: str, after: str, limit: int) -> list[str]:
    """The next ids of records that have no vector of a model."""
    space = _find(table, model)
    asked = f"id > {quoted(after)}" + ("" if space is None else f" AND {space.lacking}")
    by_id = part("query").ColumnOrdering(column_name="id")
    found = table.handle.search().where(asked).select(["id"]).order_by([by_id]).limit(limit).to_arrow()
    return list(dict.fromkeys(found["id"].to_pylist()))


def put(catalog: Catalog, entry: Entry, model: str, given: Sequence[NewVector]) -> set[str]:
    """Give records vectors of one width, where they still have the text that was embedded; returns whose got one.

    The lock must be held.
    """
    table = catalog.open(entry)
    served = serving(table.schema)
    serves = served is None or not table.has(served.held)
    needed = room(table, model, len(given[0].embedding), serves=serves)
    new = {one.id: one for one in given}
    rows = _waiting(table, model, new)
    if not len(rows):
        return set()
    if needed is None:
        return _put(table, model, rows, new)
    with catalog.as_one([replace(entry, state="writing", version=table.version)]):
        needed.make(table)
        return _put(table, model, rows, new)


def serve(table: Table, collection: str, model: str) -> None:
    """Search the vectors of a model from now on, in one commit. The lock must be held."""
    space = _find(table, model)
    if space is None or not table.has(space.held):
        raise InvalidArgument(f"collection {collection!r} has no vectors of {model!r}; embed it with that model first")
    if not space.serves:
        others = {other.column: {SERVES: ""} for other in spaces_of(table.schema) if other.serves}
        table.note({**others, space.column: {SERVES: "yes"}})


def discard(table: Table, collection: str, model: str) -> int:
    """Let go of the vectors of a model, in one commit; returns how many there were. The lock must be held."""
    space = _find(table, model)
    if space is None:
        return 0
    count = table.count(space.held)
    if count and space.serves:
        raise InvalidArgument(f"{model!r} serves collection {collection!r}; let another model serve it first")
    table.drop_columns(space.columns)
    return count


def _find(table: Table, model: str) -> Space | None:
    return next((space for space in spaces_of(table.schema) if space.model == model), None)


def _waiting(table: Table, model: str, new: Mapping[str, NewVector]) -> ArrowTable:
    """The rows of those records that still have the text that was embedded and no vector of it, each id once."""
    space = _find(table, model)
    condition = "" if space is None else f" AND {space.lacking}"
    rows = arrow().concat_tables(pages(table, list(new), None, condition))
    chosen: dict[str, int] = {}
    for at, (name, known) in enumerate(zip(rows["id"].to_pylist(), rows["text_hash"].to_pylist(), strict=True)):
        if new[name].hash == known:
            chosen.setdefault(name, at)
    return rows.take(arrow().array(list(chosen.values()), arrow().int64()))


def _put(table: Table, model: str, rows: ArrowTable, new: Mapping[str, NewVector]) -> set[str]:
    """Write rows back with the new vectors."""
    space, schema = _find(table, model), table.schema
    assert space is not None
    ids = rows["id"].to_pylist()
    vectors = vector_columns(space, [new[name].embedding for name in ids], rows["text_hash"].to_pylist())
    columns = {name: vectors[name] if name in vectors else rows[name] for name in schema.names}
    if table.replace(arrow().table(columns, schema=schema), UNCHANGED) == len(ids):
        return set(ids)
    # Another machine was faster with some of them.
    found = pages(table, ids, ["id"], f" AND {space.held}")
    return {name for page in found for name in page["id"].to_pylist()}
