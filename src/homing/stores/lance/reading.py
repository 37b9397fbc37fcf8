"""Records by id, and all of them in order."""

from __future__ import annotations

from collections.abc import Iterator

from homing.records import VectorRecord
from homing.stores.lance.engine import ArrowTable, run
from homing.stores.lance.filtering import Narrowed
from homing.stores.lance.rows import STORED, Space, records_of, serving, spaces_of, text_of
from homing.stores.lance.table import Table, any_of, quoted

PAGE = 500


def pages(table: Table, ids: list[str], columns: list[str] | None, condition: str = "") -> Iterator[ArrowTable]:
    """The rows with these ids that fulfil a further condition, page by page; without columns, all of theirs."""
    for start in range(0, len(ids), PAGE):
        asked = table.reader.query().where(any_of("id", ids[start : start + PAGE]) + condition)
        yield run((asked if columns is None else asked.select(columns)).to_arrow())


def with_ids(table: Table, collection: str, ids: list[str], *, embeddings: bool = True) -> dict[str, VectorRecord]:
    """The records that exist, with the vectors that are searched or without any."""
    space = serving(table.schema) if embeddings else None
    found = (records_of(page, collection, space) for page in pages(table, ids, _columns(space)))
    return {record.id: record for records in found for record in records}


def texts_with_ids(table: Table, ids: list[str], lacking: str) -> dict[str, str]:
    """The texts of the records that exist; with `lacking`, of those without a vector of this model."""
    space = next((one for one in spaces_of(table.schema) if one.model == lacking), None)
    condition = "" if space is None else f" AND {space.lacking}"
    rows = (row for page in pages(table, ids, ["id", "text", "exact"], condition) for row in page.to_pylist())
    return {row["id"]: text_of(row) for row in rows}


def after(table: Table, collection: str, last: str | None) -> Iterator[VectorRecord]:
    """Every record beyond an id, by id, all as of one commit. Only the ids are held in memory."""
    snapshot = table.snapshot()
    query = snapshot.search().select(["id"]).with_row_id(True).limit(None)
    if last is not None:
        query = query.where(f"id > {quoted(last)}")
    rows = query.to_arrow().sort_by("id")
    space = serving(snapshot.schema)
    columns = _columns(space)
    for start in range(0, len(rows), PAGE):
        page = snapshot.take_row_ids(rows["_rowid"][start : start + PAGE].to_pylist()).select(columns).to_arrow()
        for record in records_of(page.sort_by("id"), collection, space):
            # A key that is there twice (written around us) is one record.
            if record.id != last:
                yield record
            last = record.id


def ids_of(table: Table, asked: Narrowed) -> list[str]:
    """Every id that passes a filter, in order; a key that is there twice is one record."""
    found = table.handle.search() if asked.condition is None else table.handle.search().where(asked.condition)
    rows = found.select(asked.columns(["id"])).limit(None).to_arrow().to_pylist()
    return sorted({row["id"] for row in rows if asked.passes(row)})


def _columns(space: Space | None) -> list[str]:
    return STORED if space is None else [*STORED, space.column]
