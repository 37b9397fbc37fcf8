"""Records by id, and all of them in order."""

from __future__ import annotations

from collections.abc import Iterator

from homing.records import VectorRecord
from homing.stores.lance.engine import Handle
from homing.stores.lance.rows import STORED, VECTOR, records_of
from homing.stores.lance.table import Table, any_of, quoted

PAGE = 500


def with_ids(table: Table, collection: str, ids: list[str]) -> dict[str, VectorRecord]:
    """The records that exist."""
    found: dict[str, VectorRecord] = {}
    for start in range(0, len(ids), PAGE):
        rows = (
            table.handle.search()
            .where(any_of("id", ids[start : start + PAGE]))
            .select(_columns(table.handle))
            .limit(None)
            .to_arrow()
        )
        found.update((record.id, record) for record in records_of(rows, collection))
    return found


def after(table: Table, collection: str, last: str | None) -> Iterator[VectorRecord]:
    """Every record beyond an id, by id, all as of one commit. Only the ids are held in memory."""
    snapshot = table.snapshot()
    query = snapshot.search().select(["id"]).with_row_id(True).limit(None)
    if last is not None:
        query = query.where(f"id > {quoted(last)}")
    rows = query.to_arrow().sort_by("id")
    columns = _columns(snapshot)
    for start in range(0, len(rows), PAGE):
        page = snapshot.take_row_ids(rows["_rowid"][start : start + PAGE].to_pylist()).select(columns).to_arrow()
        for record in records_of(page.sort_by("id"), collection):
            # A key that is there twice (written around us) is one record.
            if record.id != last:
                yield record
            last = record.id


def ids_of(table: Table) -> list[str]:
    """Every id in order; a key that is there twice is one record."""
    rows = table.handle.search().select(["id"]).limit(None).to_arrow()
    return sorted(set(rows["id"].to_pylist()))


def _columns(handle: Handle) -> list[str]:
    return [*STORED, VECTOR] if VECTOR in handle.schema.names else STORED
