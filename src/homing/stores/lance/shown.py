"""A store that shows one of its collections as a plain table as well, for whoever reads that with LanceDB's own tools.

The table has a row for each record: its id, some fields out of its metadata as columns, its vector, and the metadata as
JSON. It is derived: whatever changes the collection changes the table after it, and a table that a killed process left
behind is put right when the store is next opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from homing.database import Transaction
from homing.records import VectorRecord
from homing.stores.lance.database import Table, any_of, key_field
from homing.stores.lance.engine import Address, ArrowSchema, ArrowTable, arrow, translated
from homing.stores.lance.rows import VECTOR, space_of, vector_array, vector_field
from homing.stores.lance.store import LanceStore
from homing.stores.store import NewVector

PAGE = 1_000


class ShownStore(LanceStore):
    """A `LanceStore` whose collection `shown` is the table of that name, too.

    `fields` are the metadata that become columns, with whether each is a list of texts instead of a text. `created`
    says whether the table was made just now; `dimensions` is the width of its vectors until there are some.
    """

    def __init__(
        self, address: Address | str | Path, shown: str, fields: dict[str, bool], *, width: int, model: str = ""
    ) -> None:
        super().__init__(address)
        self._shown = shown
        self._fields = fields
        found = self.tables.table(shown)
        self.created = found is None
        if found is None:
            with self.tables.writing():
                found = self.tables.table(shown) or self.tables.create(shown, self._schema(model, width))
        self._table: Table = found
        if self._differs():
            self._show_all()

    def write(self, records: Iterable[VectorRecord], transaction: Transaction | None = None) -> int:
        given = list(records)
        count = super().write(given, transaction)
        self._show([one.id for one in given if one.collection == self._shown])
        return count

    def delete(self, collection: str, ids: Sequence[str], transaction: Transaction | None = None) -> int:
        count = super().delete(collection, ids, transaction)
        if collection == self._shown and ids:
            with self.tables.writing():
                self._table.delete(any_of("id", list(ids)))
        return count

    def drop(self, collection: str) -> int:
        count = super().drop(collection)
        if collection == self._shown:
            self._show_all()
        return count

    def put_vectors(self, collection: str, model: str, vectors: Sequence[NewVector]) -> set[str]:
        written = super().put_vectors(collection, model, vectors)
        if collection == self._shown and model == self.model_of(collection):
            self._show(sorted(written))
        return written

    def serve(self, collection: str, model: str, transaction: Transaction | None = None) -> None:
        super().serve(collection, model, transaction)
        if collection == self._shown:
            self._show_all()

    def _differs(self) -> bool:
        with translated(self.tables.address):
            rows = self._table.handle.search().select(["id", "metadata"]).limit(None).to_arrow().to_pylist()
        known = {row["id"]: row["metadata"] for row in rows}
        ids = self.ids(self._shown)
        return known != {one.id: _json(one) for start in range(0, len(ids), PAGE) for one in self._page(ids, start)}

    def _page(self, ids: Sequence[str], start: int) -> list[VectorRecord]:
        return self.get(self._shown, ids[start : start + PAGE], embeddings=False)

    def _show(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        records = self.get(self._shown, ids)
        space = space_of(self._table.schema)
        widths = {(one.model, len(one.embedding)) for one in records if one.embedding is not None}
        if widths and (space is None or widths != {(space.model, space.dimensions)}):
            self._show_all()
            return
        with self.tables.writing():
            self._table.upsert(self._rows(records, self._table.schema))

    def _show_all(self) -> None:
        """Put the whole collection in the place of what the table has, in one commit."""
        records = list(self.records(self._shown))
        space = space_of(self._table.schema)
        model, width = ("", 0) if space is None else (space.model, space.dimensions)
        for one in records:
            if one.embedding is not None:
                model, width = one.model, len(one.embedding)
        rows = self._rows(records, self._schema(model, width))
        with self.tables.writing(), translated(self.tables.address):
            self._table.handle.add(rows, mode="overwrite", on_bad_vectors="null")

    def _schema(self, model: str, width: int) -> ArrowSchema:
        pa = arrow()
        fields = [
            pa.field(name, pa.list_(pa.string()) if many else pa.string(), nullable=False)
            for name, many in self._fields.items()
        ]
        metadata = pa.field("metadata", pa.string(), nullable=False)
        return pa.schema([key_field(), *fields, vector_field(model, width), metadata])

    def _rows(self, records: Sequence[VectorRecord], schema: ArrowSchema) -> ArrowTable:
        width = schema.field(VECTOR).type.list_size
        columns: dict[str, Any] = {
            "id": [one.id for one in records],
            **{name: [_plain(one.metadata.get(name)) for one in records] for name in self._fields},
            VECTOR: vector_array([one.embedding for one in records], width),
            "metadata": [_json(one) for one in records],
        }
        return arrow().table(columns, schema=schema)


def _json(record: VectorRecord) -> str:
    return json.dumps(dict(record.metadata), ensure_ascii=True, sort_keys=True)


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else str(value or "")
