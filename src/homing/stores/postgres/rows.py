"""Records as rows of the tables: texts that PostgreSQL can hold, attributes, and the way in.

Rows go in by COPY … (FORMAT binary): the fastest way, and no text that could be misread. Each field is its length and
its bytes, big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from homing.database.postgres.driver import Connection, packed
from homing.records import VectorRecord
from homing.stores.arguments import is_encodable, metadata_json
from homing.stores.filters import attributes, canonical
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.schema import vector_table
from homing.vectors import Matrix

VECTORS_AT_ONCE = 500
"""Vectors that one statement writes: into an index that stands already, each takes milliseconds."""

_NULL = struct.pack(">i", -1)
_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_END = struct.pack(">h", -1)
_PORTION = 1 << 18

_TEXT_OID = 25
_integer = struct.Struct(">ii").pack
_bigint = struct.Struct(">iq").pack
_length = struct.Struct(">i").pack
_array = struct.Struct(">iiiii").pack


def is_plain(text: str | None) -> bool:
    """Whether a text can be stored as it is: PostgreSQL holds neither NUL nor half a surrogate pair."""
    return text is None or ("\0" not in text and is_encodable(text))


def escape(text: str) -> str:
    """Any text in plain ASCII."""
    return text.encode("unicode_escape").decode("ascii")


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return text.encode("ascii").decode("unicode_escape")


def text_columns(record: VectorRecord) -> tuple[bool, str, str | None]:
    """The columns `escaped`, `text` and `keywords` of a record."""
    if is_plain(record.text) and is_plain(record.keywords):
        return False, record.text, record.keywords
    return True, escape(record.text), None if record.keywords is None else escape(record.keywords)


def labels(collection: int, metadata: Mapping[str, Any]) -> list[str]:
    """The column `attributes` of a record: plain ASCII, whatever is in its metadata."""
    return [label(collection, key, value) for key, value in attributes(metadata)]


def label(collection: int, key: str, value: str) -> str:
    """One attribute of a record, whose value is in its canonical form."""
    return f"{collection} {canonical(key)} {value}"


def copy_records(
    connection: Connection, collection: Collection, records: Iterable[tuple[int, VectorRecord, bytes]]
) -> None:
    """Write new records, each with its key and the hash of its text."""
    columns = ("key", "collection", "user_id", "id", "attributes", "metadata", "hash", "escaped", "text", "keywords")

    def fields(key: int, record: VectorRecord, text_hash: bytes) -> list[bytes]:
        escaped, text, keywords = text_columns(record)
        return [
            *_owned(key, collection),
            _text_field(record.id),
            _text_array(labels(collection.id, record.metadata)),
            _text_field(metadata_json(record.metadata)),
            _field(text_hash),
            b"\0\0\0\1\1" if escaped else b"\0\0\0\1\0",
            _text_field(text),
            _text_field(keywords),
        ]

    _copy(connection, collection, "records", columns, (fields(*one) for one in records))


def copy_vectors(
    connection: Connection,
    collection: Collection,
    space: int,
    keys: Sequence[int],
    hashes: Sequence[bytes],
    vectors: Matrix,
) -> None:
    """Write the vectors of records into a space, by their keys, with the hashes of the texts they were made from."""
    columns = ("record", "collection", "user_id", "hash", "embedding")
    for start in range(0, len(keys), VECTORS_AT_ONCE):
        portion = slice(start, start + VECTORS_AT_ONCE)
        rows = (
            [*_owned(key, collection), _field(text_hash), _field(data)]
            for key, text_hash, data in zip(keys[portion], hashes[portion], packed(vectors[portion]), strict=True)
        )
        _copy(connection, collection, vector_table(space), columns, rows)


def _owned(key: int, collection: Collection) -> tuple[bytes, bytes, bytes]:
    """The first three columns of every table: a record's key, its collection, and the user."""
    return _bigint(8, key), _integer(4, collection.id), _text_field(collection.user)


def _field(data: bytes) -> bytes:
    """Anything that is in its own binary form already."""
    return _length(len(data)) + data


def _text_field(value: str | None) -> bytes:
    """A `text`, `json`, or NULL."""
    return _NULL if value is None else _field(value.encode())


def _text_array(values: Sequence[str]) -> bytes:
    if not values:
        return _field(struct.pack(">iii", 0, 0, _TEXT_OID))
    return _field(_array(1, 0, _TEXT_OID, len(values), 1) + b"".join(_text_field(value) for value in values))


def _copy(
    connection: Connection, collection: Collection, table: str, columns: Sequence[str], rows: Iterable[Sequence[bytes]]
) -> None:
    """Write rows of fields. Into a fenced table they go by way of another."""
    listed = ", ".join(columns)
    if not collection.row_security:
        _stream(connection, table, listed, rows)
        return
    # PostgreSQL does not COPY into a table with row-level security; an INSERT it checks row by row.
    waiting = f"incoming_{table}"
    connection.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {waiting} (LIKE {table}) ON COMMIT DROP")
    _stream(connection, waiting, listed, rows)
    connection.execute(f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {waiting} ORDER BY {columns[0]}")
    connection.execute(f"TRUNCATE {waiting}")


def _stream(connection: Connection, table: str, listed: str, rows: Iterable[Sequence[bytes]]) -> None:
    count = struct.pack(">h", listed.count(",") + 1)
    portion = bytearray(_HEAD)
    with connection.cursor().copy(f"COPY {table} ({listed}) FROM STDIN (FORMAT binary)") as stream:
        for row in rows:
            portion += count
            for one in row:
                portion += one
            if len(portion) > _PORTION:
                stream.write(bytes(portion))
                portion.clear()
        stream.write(bytes(portion + _END))
