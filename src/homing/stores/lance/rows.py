"""Records as rows of a table and back.

id          text     the key
text        text     as given; with replacement characters where UTF-8 cannot hold it
keywords    text     likewise, null where the text stands for itself
exact       text     null, or both of them as escaped JSON where UTF-8 cannot hold one
metadata    text     JSON
attributes  texts    each metadata pair as `"key"=value`, canonical, to be compared by equality
words       text     the tokens of the keyword leg, separated by spaces
text_hash   text     of the text that was embedded; null where there is no vector
vector      floats   of unit length; the column is there from the first vector on and names its model
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from homing.records import Match, Metadata, VectorRecord, text_hash
from homing.stores.arguments import is_encodable
from homing.stores.attributes import attributes
from homing.stores.batches import Batch
from homing.stores.lance.engine import ArrowSchema, ArrowTable, arrow
from homing.stores.lance.table import key_field
from homing.text.tokens import tokens
from homing.vectors import Matrix, Vector

VECTOR = "vector"
SHOWN = ["id", "text", "exact", "metadata"]
"""The columns of a match."""
STORED = [*SHOWN, "keywords"]
"""The columns a record is read back from, besides its vector."""
_MODEL = b"homing.model"
PROBES = "homing.probes"
"""A note on the vector column: how many partitions of its index a search reads; `0` where an index does not pay."""
INDEXED = "homing.indexed"
"""A note on the vector column: how many rows there were when that was found out."""


@dataclass(frozen=True, slots=True)
class Space:
    """What the vectors of a table are: their model, their width, and how their index is read."""

    model: str
    dimensions: int
    probes: int = 0
    indexed: int = 0


def space_of(schema: ArrowSchema) -> Space | None:
    """The space of a table's vectors; None where it never had any."""
    if VECTOR not in schema.names:
        return None
    field = schema.field(VECTOR)
    notes = field.metadata or {}
    return Space(
        notes.get(_MODEL, b"").decode(),
        field.type.list_size,
        int(notes.get(PROBES.encode(), b"0")),
        int(notes.get(INDEXED.encode(), b"0")),
    )


def vector_field(model: str, dimensions: int) -> Any:
    """The column for vectors of a model."""
    pa = arrow()
    return pa.field(VECTOR, pa.list_(pa.float32(), dimensions), metadata={_MODEL: model.encode()})


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
        pa.field("text_hash", pa.string()),
    ]
    if batch.embedded:
        fields.append(vector_field(batch.model, batch.vectors.shape[1]))
    return pa.schema(fields, metadata={b"homing.collection": batch.collection.encode()})


def rows_of(batch: Batch, schema: ArrowSchema) -> ArrowTable:
    """A batch as rows with these columns."""
    records = batch.records
    columns: dict[str, Any] = {
        "id": [record.id for record in records],
        "text": [_readable(record.text) for record in records],
        "keywords": [None if record.keywords is None else _readable(record.keywords) for record in records],
        "exact": [_exact(record) for record in records],
        "metadata": [_json(record.metadata) for record in records],
        "attributes": [sorted(attribute(*pair) for pair in attributes(record.metadata)) for record in records],
        "words": [" ".join(tokens(record.text if record.keywords is None else record.keywords)) for record in records],
        "text_hash": [None if record.embedding is None else text_hash(record.text) for record in records],
    }
    if VECTOR in schema.names:
        columns[VECTOR] = _vector_array(batch, schema.field(VECTOR).type.list_size)
    return arrow().table(columns, schema=schema)


def attribute(key: str, value: str) -> str:
    """A metadata pair as one text. A JSON text ends where it ends, so no two pairs give the same."""
    return f"{json.dumps(key)}={value}"


def records_of(rows: ArrowTable, collection: str) -> Iterator[VectorRecord]:
    """The records of rows, in their order."""
    space = space_of(rows.schema)
    vectors = vectors_of(rows) if space is not None else [None] * len(rows)
    for row, vector in zip(_stored(rows), vectors, strict=True):
        text, keywords = _texts(row)
        yield VectorRecord(
            row["id"],
            collection,
            vector,
            json.loads(row["metadata"]),
            text,
            space.model if space is not None and vector is not None else "",
            keywords,
        )


def vectors_of(rows: ArrowTable) -> list[Vector | None]:
    """The vector of each row, where it has one."""
    column = rows.column(VECTOR).combine_chunks()
    there = column.is_valid().to_numpy(zero_copy_only=False)
    found: list[Vector | None] = [None] * len(rows)
    for position, vector in zip(np.flatnonzero(there).tolist(), matrix_of(rows), strict=True):
        found[position] = vector
    return found


def matrix_of(rows: ArrowTable) -> Matrix:
    """The vectors of those rows that have one."""
    column = rows.column(VECTOR).combine_chunks().drop_null()
    flat = column.flatten().to_numpy(zero_copy_only=False)
    return np.array(flat, np.float32).reshape(len(column), column.type.list_size)


def match_of(
    row: dict[str, Any], collection: str, *, distance: float | None = None, score: float | None = None
) -> Match:
    """A row that was found."""
    metadata: Metadata = json.loads(row["metadata"])
    return Match(row["id"], collection, distance, metadata, text_of(row), score)


def _stored(rows: ArrowTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.select(STORED).to_pylist()
    return found


def text_of(row: dict[str, Any]) -> str:
    """The text of a row with the columns `text` and `exact`."""
    return row["text"] if row["exact"] is None else json.loads(row["exact"])[0]  # type: ignore[no-any-return]


def _texts(row: dict[str, Any]) -> tuple[str, str | None]:
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


def _json(metadata: Metadata) -> str:
    # Chinese takes half the room unescaped; half a surrogate pair survives only escaped.
    found = json.dumps(dict(metadata), ensure_ascii=False, separators=(",", ":"))
    return found if is_encodable(found) else json.dumps(dict(metadata), separators=(",", ":"))


def _vector_array(batch: Batch, width: int) -> Any:
    pa = arrow()
    wide = np.zeros((len(batch.records), width), np.float32)
    missing = np.ones(len(batch.records), bool)
    if batch.embedded:
        wide[batch.embedded] = batch.vectors
        missing[batch.embedded] = False
    return pa.FixedSizeListArray.from_arrays(pa.array(wide.reshape(-1)), width, mask=pa.array(missing))
