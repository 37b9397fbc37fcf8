"""Records as rows of a table and back.

id          text     the key
text        text     as given; with replacement characters where UTF-8 cannot hold it
keywords    text     likewise, null where the text stands for itself
exact       text     null, or both of them as escaped JSON where UTF-8 cannot hold one
metadata    text     JSON
attributes  texts    each metadata pair as `"key"=value`, canonical, to be compared by equality
words       text     the tokens of the keyword leg, separated by spaces
text_hash   text     of the text as it was given
vector_…    floats   vectors of one model, of unit length; the column names the model
hash_…      text     of the text that such a vector was made of; null where there is no vector
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from homing.records import Match, Metadata, VectorRecord, text_hash
from homing.stores.arguments import Batch, is_encodable, metadata_json
from homing.stores.filters import attributes
from homing.stores.lance.database import key_field
from homing.stores.lance.engine import ArrowSchema, ArrowTable, arrow
from homing.text.tokens import tokens
from homing.vectors import Matrix, Vector

VECTOR = "vector"
"""The vector column of a table that has only one; in the table of a collection the names of several begin so."""
SHOWN = ["id", "text", "exact", "metadata"]
"""The columns of a match."""
STORED = [*SHOWN, "keywords"]
"""The columns a record is read back from, besides its vector."""
_MODEL = b"homing.model"
SERVES = "homing.serves"
"""A note on the vector column that is searched; empty on the others."""
PROBES = "homing.probes"
"""A note on the vector column: how many partitions of its index a search reads; `0` where an index does not pay."""
INDEXED = "homing.indexed"
"""A note on the vector column: how many rows there were when that was found out."""

Vectors = Mapping[str, Vector]
"""Vectors of one record, by the column they belong in."""


@dataclass(frozen=True, slots=True)
class Space:
    """The vectors of one model in a table: their column, whether they are searched, and how their index is read."""

    model: str
    dimensions: int
    column: str = VECTOR
    serves: bool = False
    probes: int = 0
    indexed: int = 0

    @property
    def hashes(self) -> str:
        """The column that says of which text each vector was made."""
        return self.column.replace(VECTOR, "hash", 1)

    @property
    def columns(self) -> list[str]:
        """Its two columns."""
        return [self.column, self.hashes]

    @property
    def held(self) -> str:
        """The condition that a row has a vector of its text."""
        return f"{self.hashes} = text_hash"

    @property
    def lacking(self) -> str:
        """The condition that it has none."""
        return f"({self.hashes} IS NULL OR {self.hashes} <> text_hash)"

    @property
    def fields(self) -> list[Any]:
        """Its two columns as parts of a schema."""
        return [
            vector_field(self.model, self.dimensions, self.column, serves=self.serves),
            arrow().field(self.hashes, arrow().string()),
        ]


def new_space(model: str, dimensions: int, *, serves: bool) -> Space:
    """Room for the vectors of a model in the table of a collection."""
    name = hashlib.blake2b(model.encode(), digest_size=8).hexdigest()
    return Space(model, dimensions, f"{VECTOR}_{name}", serves)


def space_of(schema: ArrowSchema, column: str = VECTOR) -> Space | None:
    """The space of a vector column; None where there is no such column."""
    if column not in schema.names:
        return None
    field = schema.field(column)
    notes = field.metadata or {}
    return Space(
        notes.get(_MODEL, b"").decode(),
        field.type.list_size,
        column,
        bool(notes.get(SERVES.encode())),
        int(notes.get(PROBES.encode(), b"0")),
        int(notes.get(INDEXED.encode(), b"0")),
    )


def spaces_of(schema: ArrowSchema) -> list[Space]:
    """The spaces of a collection, the one that is searched first."""
    found = (space_of(schema, name) for name in schema.names if name.startswith(f"{VECTOR}_"))
    return sorted((space for space in found if space is not None), key=lambda space: (not space.serves, space.model))


def find_space(schema: ArrowSchema, model: str) -> Space | None:
    """The space of a model in a collection, if it has one."""
    return next((space for space in spaces_of(schema) if space.model == model), None)


def serving(schema: ArrowSchema) -> Space | None:
    """The space of a collection that is searched."""
    return next((space for space in spaces_of(schema) if space.serves), None)


def vector_field(model: str, dimensions: int, column: str = VECTOR, *, serves: bool = False) -> Any:
    """The column for vectors of a model."""
    pa = arrow()
    notes = {_MODEL: model.encode(), **({SERVES.encode(): b"yes"} if serves else {})}
    return pa.field(column, pa.list_(pa.float32(), dimensions), metadata=notes)


def schema_for(batch: Batch) -> ArrowSchema:
    """The columns of a new table that begins with this batch."""
    pa = arrow()
    fields = [
        key_field(),
        pa.field("text", pa.string(), nullable=False),
        pa.field("keywords", pa.string()),
        pa.field("exact", pa.string()),
        pa.field("metadata", pa.string(), nullable=False),
        pa.field("attributes", pa.list_(pa.string()), nullable=False),
        pa.field("words", pa.string(), nullable=False),
        pa.field("text_hash", pa.string(), nullable=False),
    ]
    if batch.embedded:
        fields += new_space(batch.model, batch.vectors.shape[1], serves=True).fields
    return pa.schema(fields, metadata={b"homing.collection": batch.collection.encode()})


def rows_of(batch: Batch, schema: ArrowSchema, kept: Mapping[str, Vectors] | None = None) -> ArrowTable:
    """A batch as rows with these columns; `kept` are vectors by id that its records have already."""
    records = batch.records
    hashes = [text_hash(record.text) for record in records]
    columns: dict[str, Any] = {
        "id": [record.id for record in records],
        "text": [_readable(record.text) for record in records],
        "keywords": [None if record.keywords is None else _readable(record.keywords) for record in records],
        "exact": [_exact(record) for record in records],
        "metadata": [metadata_json(record.metadata) for record in records],
        "attributes": [sorted(attribute(*pair) for pair in attributes(record.metadata)) for record in records],
        "words": [words_of(record.text, record.keywords) for record in records],
        "text_hash": hashes,
    }
    for space in spaces_of(schema):
        vectors = [kept[record.id].get(space.column) if kept and record.id in kept else None for record in records]
        if space.model == batch.model:
            for at, vector in zip(batch.embedded, batch.vectors, strict=True):
                vectors[at] = vector
        columns |= vector_columns(space, vectors, hashes)
    return arrow().table(columns, schema=schema)


def vector_columns(space: Space, vectors: Sequence[Vector | None], hashes: Sequence[str]) -> dict[str, Any]:
    """The two columns of a space: the vectors of rows, where they have one, and the hashes of their texts."""
    made_of = [None if vector is None else known for vector, known in zip(vectors, hashes, strict=True)]
    return {
        space.column: vector_array(vectors, space.dimensions),
        space.hashes: arrow().array(made_of, arrow().string()),
    }


def vector_array(vectors: Sequence[Vector | None], width: int) -> Any:
    """A column of vectors, null where there is none."""
    wide = np.zeros((len(vectors), width), np.float32)
    for row, vector in zip(wide, vectors, strict=True):
        if vector is not None:
            row[:] = vector
    missing = arrow().array([vector is None for vector in vectors], arrow().bool_())
    return arrow().FixedSizeListArray.from_arrays(arrow().array(wide.reshape(-1)), width, mask=missing)


def words_of(text: str, keywords: str | None) -> str:
    """What the keyword leg reads of a record."""
    return " ".join(tokens(text if keywords is None else keywords))


def attribute(key: str, value: str) -> str:
    """A metadata pair as one text. A JSON text ends where it ends, so no two pairs give the same."""
    return f"{json.dumps(key)}={value}"


def records_of(rows: ArrowTable, collection: str, space: Space | None) -> Iterator[VectorRecord]:
    """The records of rows, in their order, with the vectors of a space."""
    vectors = vectors_of(rows, space.column) if space is not None else [None] * len(rows)
    for row, vector in zip(rows.select(STORED).to_pylist(), vectors, strict=True):
        yield record_of(row, collection, vector, space.model if space is not None and vector is not None else "")


def record_of(row: dict[str, Any], collection: str, vector: Vector | None = None, model: str = "") -> VectorRecord:
    """The record of a row with the columns `STORED`."""
    text, keywords = texts_of(row)
    return VectorRecord(row["id"], collection, vector, json.loads(row["metadata"]), text, model, keywords)


def vectors_of(rows: ArrowTable, column: str) -> list[Vector | None]:
    """The vector of each row, where it has one."""
    there = rows.column(column).combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    found: list[Vector | None] = [None] * len(rows)
    for position, vector in zip(np.flatnonzero(there).tolist(), matrix_of(rows, column), strict=True):
        found[position] = vector
    return found


def matrix_of(rows: ArrowTable, column: str = VECTOR) -> Matrix:
    """The vectors of those rows that have one."""
    held = rows.column(column).combine_chunks().drop_null()
    flat = held.flatten().to_numpy(zero_copy_only=False)
    return np.array(flat, np.float32).reshape(len(held), held.type.list_size)


def match_of(
    row: dict[str, Any], collection: str, *, distance: float | None = None, score: float | None = None
) -> Match:
    """A row that was found."""
    metadata: Metadata = json.loads(row["metadata"])
    return Match(row["id"], collection, distance, metadata, text_of(row), score)


def text_of(row: dict[str, Any]) -> str:
    """The text of a row with the columns `text` and `exact`."""
    return row["text"] if row["exact"] is None else json.loads(row["exact"])[0]  # type: ignore[no-any-return]


def texts_of(row: dict[str, Any]) -> tuple[str, str | None]:
    """The text and the keywords of a row with the columns `text`, `keywords` and `exact`."""
    if row["exact"] is not None:
        text, keywords = json.loads(row["exact"])
        return text, keywords
    return row["text"], row["keywords"]


def _readable(text: str) -> str:
    return text if is_encodable(text) else text.encode("utf-8", "replace").decode()


def _exact(record: VectorRecord) -> str | None:
    if is_encodable(record.text) and (record.keywords is None or is_encodable(record.keywords)):
        return None
    return json.dumps([record.text, record.keywords])
