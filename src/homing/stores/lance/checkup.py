"""Whether a store is whole: every table can be read to its end, keys are single, and no work was left half done."""

from __future__ import annotations

from collections.abc import Iterator

from homing.errors import StoreError
from homing.stores.lance.catalog import Catalog
from homing.stores.lance.faults import translated
from homing.stores.lance.rows import VECTOR
from homing.stores.lance.table import Table


def findings(catalog: Catalog) -> Iterator[str]:
    """What is wrong, a sentence each."""
    for name, entry in sorted(catalog.entries().items()):
        if entry.state == "aside":
            continue
        if entry.state != "live":
            yield f"collection {name!r} was left half changed ({entry.state}); the next write mends it"
            continue
        try:
            yield from _table(catalog.open(entry), name)
        except StoreError as error:
            yield f"collection {name!r} cannot be read: {error.message}"


def _table(table: Table, name: str) -> Iterator[str]:
    snapshot = table.snapshot()
    has_vectors = VECTOR in snapshot.schema.names
    seen: set[str] = set()
    twice = unmatched = 0
    with translated(table.database.address):
        for batch in snapshot.search().limit(None).to_batches():
            for key in batch.column("id").to_pylist():
                twice += key in seen
                seen.add(key)
            if has_vectors:
                hashed = batch.column("text_hash").is_valid()
                unmatched += sum(a != b for a, b in zip(hashed, batch.column(VECTOR).is_valid(), strict=True))
    if twice:
        yield f"{twice} records of collection {name!r} are there twice; write them again after deleting them"
    if unmatched:
        yield f"{unmatched} vectors of collection {name!r} do not belong to the text of their record"
