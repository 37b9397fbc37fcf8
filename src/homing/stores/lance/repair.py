"""Making anew what is derived: the words of rows from their texts, rows that are there twice, and the indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from homing.records import VectorRecord, text_hash
from homing.stores.arguments import Batch
from homing.stores.lance.catalog import Catalog, Entry
from homing.stores.lance.database import Table, any_of
from homing.stores.lance.engine import arrow, translated
from homing.stores.lance.rows import Vectors, record_of, rows_of, spaces_of, texts_of, vectors_of, words_of
from homing.stores.store import Rebuilt

UNIT = 1e-3
"""How far the length of a vector may be from one."""
PORTION = 1_000
"""Rows that are written at once."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A row whose text is whole, as its record without a vector, and those of its vectors that can be trusted."""

    record: VectorRecord
    kept: Vectors
    lost: int
    """Vectors that cannot."""
    right: bool
    """Whether it is found by its own words."""


def rebuild(catalog: Catalog, entry: Entry) -> Rebuilt:
    """Write the rows of a collection anew that are not as they should be, all or none. The lock must be held.

    Rows with a damaged text are left as they are. Indexes are another matter: see `Upkeep.rebuild`.
    """
    table = catalog.open(entry)
    seen: set[str] = set()
    wrong: dict[str, _Row] = {}
    for row in _rows(table, entry.collection):
        name = row.record.id
        if name in seen or row.lost or not row.right:
            # Of a row that is there twice the first to be read stays, as for those who search.
            wrong.setdefault(name, row)
        seen.add(name)
    if wrong:
        with catalog.as_one([replace(entry, state="writing", version=table.version)]):
            names = list(wrong)
            for start in range(0, len(names), PORTION):
                _write_anew(table, entry.collection, [wrong[name] for name in names[start : start + PORTION]])
    return Rebuilt(len(seen), sum(row.lost for row in wrong.values()))


def _write_anew(table: Table, collection: str, rows: list[_Row]) -> None:
    records = [row.record for row in rows]
    batch = Batch(collection, records, [], np.zeros((0, 0), np.float32), "")
    table.delete(any_of("id", [record.id for record in records]))
    table.upsert(rows_of(batch, table.schema, {row.record.id: row.kept for row in rows}))


def _rows(table: Table, collection: str) -> Iterator[_Row]:
    """Every row whose text is the one that was written."""
    with translated(table.database.address):
        for part in table.snapshot().search().limit(None).to_batches():
            yield from _whole(part, collection)


def _whole(part: Any, collection: str) -> Iterator[_Row]:
    rows = arrow().Table.from_batches([part])
    spaces = spaces_of(rows.schema)
    vectors = {space: vectors_of(rows, space.column) for space in spaces}
    for at, row in enumerate(rows.drop_columns([space.column for space in spaces]).to_pylist()):
        text, keywords = texts_of(row)
        if text_hash(text) != row["text_hash"]:
            continue
        kept, lost = {}, 0
        for space in spaces:
            vector, made_of = vectors[space][at], row[space.hashes]
            if vector is not None and made_of == row["text_hash"] and abs(np.linalg.norm(vector) - 1) < UNIT:
                kept[space.column] = vector
            elif vector is not None or made_of is not None:
                lost += 1
        yield _Row(record_of(row, collection), kept, lost, words_of(text, keywords) == row["words"])
