"""A second model's vectors beside those that answer; see `homing.stores.switching`.

They lie in a table of their own: id, hash of the text, vector. A row of it counts only while the collection has a
record of that id with that text, so writers of the collection need not know about it. To let them answer, the
collection is written anew with them as its vectors, beside the table that answers, and one commit to the catalog puts
the one in the other's place; the old table, which has those columns too, is then the one aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from homing.records import VectorRecord, text_hash
from homing.stores.batches import Batch
from homing.stores.lance import reading
from homing.stores.lance.catalog import Catalog, Entry, new_table_name
from homing.stores.lance.database import Database
from homing.stores.lance.engine import ArrowTable, arrow
from homing.stores.lance.indexes import words_index
from homing.stores.lance.rows import VECTOR, Space, space_of, text_of, vector_field, vectors_of
from homing.stores.lance.table import Table, any_of, key_field
from homing.stores.lance.writing import Writer
from homing.stores.switching import SpaceInfo, check_width, not_staged, only_vectors, still_answering

PAGE = 500
Hashes = Mapping[str, str]
"""By id, the hash of a text."""


@dataclass(frozen=True, slots=True)
class Aside:
    """A table of vectors that do not answer."""

    entry: Entry
    table: Table
    space: Space

    @property
    def hashes(self) -> Hashes:
        """What it holds, valid or not."""
        return _hashes(self.table, "text_hash IS NOT NULL")


class Collection:
    """A collection and what lies beside it, as of now."""

    def __init__(self, database: Database, catalog: Catalog, name: str, table: Table) -> None:
        self._database = database
        self._catalog = catalog
        self.name = name
        self.table = table
        self.space = space_of(table.schema)

    @cached_property
    def aside(self) -> list[Aside]:
        """The tables beside it."""
        found = []
        for entry in self._catalog.aside(self.name):
            table = self._catalog.open(entry)
            space = space_of(table.schema)
            assert space is not None
            found.append(Aside(entry, table, space))
        return found

    @cached_property
    def answering(self) -> set[str]:
        """The ids of the records whose vectors answer."""
        return set(_hashes(self.table, "text_hash IS NOT NULL")) if self.space is not None else set()

    @cached_property
    def texts(self) -> Hashes:
        """For every record the hash of its text."""
        hashes = dict(_hashes(self.table, "text_hash IS NOT NULL"))
        rows = self.table.handle.search().where("text_hash IS NULL").select(["id", "text", "exact"]).limit(None)
        return hashes | {row["id"]: text_hash(text_of(row)) for row in rows.to_arrow().to_pylist()}

    def valid(self, aside: Aside) -> set[str]:
        """The ids of the records that a table beside has the right vector for."""
        return {one for one, hashed in aside.hashes.items() if self.texts.get(one) == hashed}

    def find(self, model: str) -> Aside | None:
        """The table beside that holds vectors of a model."""
        return next((one for one in self.aside if one.space.model == model), None)

    def answers(self, model: str) -> bool:
        """Whether it is this model that answers."""
        return self.space is not None and self.space.model == model and bool(self.answering)

    def spaces(self) -> list[SpaceInfo]:
        """The models whose vectors are held."""
        held = [SpaceInfo(one.space.model, one.space.dimensions, len(self.valid(one)), False) for one in self.aside]
        if self.space is None:
            return held
        return [SpaceInfo(self.space.model, self.space.dimensions, len(self.answering), True), *held]

    def missing(self, model: str) -> list[str]:
        """The ids of the records that have a vector, but none of this model."""
        beside = self.find(model)
        has = self.answering if self.answers(model) else set() if beside is None else self.valid(beside)
        return sorted((self.answering.union(*(self.valid(one) for one in self.aside))) - has)

    def only_in(self, aside: Aside) -> int:
        """How many records have a vector in this table and nowhere else."""
        others = self.answering.union(*(self.valid(one) for one in self.aside if one is not aside))
        return len(self.valid(aside) - others)

    def stage(self, model: str, dimensions: int) -> None:
        """Make room for a model's vectors. The lock must be held."""
        held = [one.space for one in self.aside] + ([self.space] if self.space is not None else [])
        check_width(model, dimensions, (space.dimensions for space in held if space.model == model))
        if self.answers(model):
            return
        for one in self.aside:
            if one.space.model != model and not self.only_in(one):
                self._catalog.let_go([one.entry])
        if self.find(model) is None:
            pa = arrow()
            schema = pa.schema([key_field(), pa.field("text_hash", pa.string()), vector_field(model, dimensions)])
            draft = self._draft()
            self._database.create(draft.table, schema)
            self._change([Entry.beside(self.name, model, draft.table)], [replace(draft, table="")])

    def add(self, batch: Batch) -> int:
        """Give records the vectors of a batch, where they still have the text that was embedded. Under the lock."""
        if not batch.embedded:
            return 0
        lacking = set(self.missing(batch.model))
        chosen = [
            (batch.records[at], row)
            for row, at in enumerate(batch.embedded)
            if batch.records[at].id in lacking and self.texts[batch.records[at].id] == text_hash(batch.records[at].text)
        ]
        width = int(batch.vectors.shape[1])
        beside = self.find(batch.model)
        if self.answers(batch.model):
            self._fill(batch, chosen)
        elif beside is None or beside.space.dimensions != width:
            raise not_staged(self.name, f"{batch.model!r} with {width} dimensions")
        elif chosen:
            pa = arrow()
            vectors = batch.vectors[[row for _, row in chosen]]
            columns: dict[str, Any] = {
                "id": [record.id for record, _ in chosen],
                "text_hash": [text_hash(record.text) for record, _ in chosen],
                VECTOR: pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), width),
            }
            beside.table.upsert(pa.table(columns, schema=beside.table.schema))
        return len(chosen)

    def _fill(self, batch: Batch, chosen: list[tuple[VectorRecord, int]]) -> None:
        stored = reading.with_ids(self.table, self.name, [record.id for record, _ in chosen])
        records = [
            replace(stored[record.id], embedding=batch.vectors[row], model=batch.model) for record, row in chosen
        ]
        if records:
            vectors = batch.vectors[[row for _, row in chosen]]
            filled = Batch(self.name, records, list(range(len(records))), vectors, batch.model)
            Writer(self._database, self._catalog).upsert([filled])

    def activate(self, model: str, *, complete: bool) -> int:
        """Let a model's vectors answer; returns how many are missing. The lock must be held."""
        beside = self.find(model)
        if not self.answers(model) and beside is None:
            raise not_staged(self.name, repr(model))
        lacking = len(self.missing(model))
        if self.answers(model) or beside is None or (lacking and complete):
            return lacking
        draft = self._draft()
        table = self._database.create(draft.table, self._schema(beside.space), self._rows(beside))
        table.add_index(words_index())
        moved = [Entry(self.name, draft.table)]
        if self.space is not None and self.answering:
            moved.append(Entry.beside(self.name, self.space.model, self._catalog.entries()[self.name].table))
        self._change(moved, [replace(draft, table=""), replace(beside.entry, state="dropping")])
        return lacking

    def _draft(self) -> Entry:
        """A table that is being made, written down so that what a killed process leaves is removed by the next."""
        draft = Entry.beside(self.name, "draft", new_table_name(self.name), gone=True)
        self._catalog.begin([draft])
        return draft

    def _change(self, new: list[Entry], gone: list[Entry]) -> None:
        """One commit that brings in what is new and takes out what is gone; then the latter's tables go too."""
        self._catalog.put([*new, *gone])
        self._catalog.undo(gone)

    def discard(self, model: str) -> int:
        """Let go of a model's vectors. The lock must be held."""
        if self.answers(model):
            raise still_answering(self.name, model)
        beside = self.find(model)
        if beside is None:
            return 0
        if lost := self.only_in(beside):
            raise only_vectors(self.name, model, lost)
        count = len(self.valid(beside))
        self._catalog.let_go([beside.entry])
        return count

    def _schema(self, space: Space) -> Any:
        schema = self.table.schema
        kept = [schema.field(name) for name in schema.names if name != VECTOR]
        return arrow().schema([*kept, vector_field(space.model, space.dimensions)], metadata=schema.metadata)

    def _rows(self, beside: Aside) -> Any:
        """The records with the vectors from beside, batch by batch: nothing as large as the collection is held."""
        pa = arrow()
        schema = self._schema(beside.space)
        names = [name for name in schema.names if name != VECTOR]
        texts, has = self.texts, self.valid(beside)

        def batches() -> Iterator[Any]:
            for batch in self.table.snapshot().search().select(names).limit(None).to_batches():
                rows = pa.Table.from_batches([batch]).select(names)
                for start in range(0, len(rows), PAGE):
                    page = rows.slice(start, PAGE)
                    ids = page.column("id").to_pylist()
                    vectors = _vectors(beside.table, [one for one in ids if one in has])
                    columns = {name: page.column(name) for name in names}
                    columns["text_hash"] = pa.array(
                        [texts[one] if one in vectors else None for one in ids], pa.string()
                    )
                    columns[VECTOR] = _column(ids, vectors, beside.space.dimensions)
                    yield from pa.table(columns, schema=schema).to_batches()

        return pa.RecordBatchReader.from_batches(schema, batches())


def _hashes(table: Table, condition: str) -> Hashes:
    rows = table.handle.search().where(condition).select(["id", "text_hash"]).limit(None).to_arrow()
    return dict(zip(rows.column("id").to_pylist(), rows.column("text_hash").to_pylist(), strict=True))


def _vectors(table: Table, ids: list[str]) -> dict[str, Any]:
    rows: ArrowTable = table.handle.search().where(any_of("id", ids)).select(["id", VECTOR]).limit(None).to_arrow()
    return dict(zip(rows.column("id").to_pylist(), vectors_of(rows), strict=True))


def _column(ids: list[str], vectors: Mapping[str, Any], width: int) -> Any:
    pa = arrow()
    wide = np.zeros((len(ids), width), np.float32)
    for at, one in enumerate(ids):
        if one in vectors:
            wide[at] = vectors[one]
    absent = pa.array([one not in vectors for one in ids], pa.bool_())
    return pa.FixedSizeListArray.from_arrays(pa.array(wide.reshape(-1)), width, mask=absent)
