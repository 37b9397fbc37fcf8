"""The rows of records, words and vectors, on their way into the tables of a collection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from homing.database.postgres.driver import Connection, packed
from homing.records import VectorRecord
from homing.stores.arguments import is_encodable
from homing.stores.postgres import binary_copy as binary
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.filtering import labels
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.slots import Words
from homing.stores.postgres.stored_text import escape, is_plain
from homing.vectors import Matrix

VECTORS_AT_ONCE = 500
"""Vectors that one statement writes: into an index that stands already, each takes milliseconds."""


def copy_records(
    connection: Connection, collection: Collection, records: Iterable[tuple[int, VectorRecord, bytes]]
) -> None:
    """Write new records, each with its key and the hash of its text."""
    columns = ("key", "collection", "user_id", "id", "attributes", "metadata", "hash", "escaped", "text", "keywords")
    own = _owner(collection)

    def fields(key: int, record: VectorRecord, text_hash: bytes) -> list[bytes]:
        escaped, text, keywords = texts(record)
        return [
            binary.bigint(key),
            *own,
            binary.text(record.id),
            binary.texts(labels(collection.id, record.metadata)),
            binary.text(metadata(record)),
            binary.field(text_hash),
            binary.boolean(escaped),
            binary.text(text),
            binary.text(keywords),
        ]

    binary.copy(connection, "records", columns, (fields(*one) for one in records), fenced=collection.fenced)


def copy_words(connection: Connection, collection: Collection, found: Iterable[tuple[int, Words]]) -> None:
    """Write the words of records, by their keys."""
    columns = ("record", "collection", "user_id", "length", "slots", "counts")
    own = _owner(collection)

    def fields(key: int, words: Words) -> list[bytes]:
        slots, counts = words.placed(collection.id)
        return [
            binary.bigint(key), *own, binary.integer(words.length), binary.bigints(slots), binary.smallints(counts),
        ]  # fmt: skip

    binary.copy(connection, "words", columns, (fields(*one) for one in found), fenced=collection.fenced)


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
    own = _owner(collection)
    for start in range(0, len(keys), VECTORS_AT_ONCE):
        portion = slice(start, start + VECTORS_AT_ONCE)
        rows = (
            [binary.bigint(key), *own, binary.field(text_hash), binary.field(data)]
            for key, text_hash, data in zip(keys[portion], hashes[portion], packed(vectors[portion]), strict=True)
        )
        binary.copy(connection, vector_table(space), columns, rows, fenced=collection.fenced)


def texts(record: VectorRecord) -> tuple[bool, str, str | None]:
    """The columns `escaped`, `text` and `keywords` of a record."""
    if is_plain(record.text) and is_plain(record.keywords):
        return False, record.text, record.keywords
    return True, escape(record.text), None if record.keywords is None else escape(record.keywords)


def metadata(record: VectorRecord) -> str:
    """The column `metadata` of a record."""
    # Chinese takes half the room unescaped; half a surrogate pair survives only escaped.
    found = json.dumps(dict(record.metadata), ensure_ascii=False, separators=(",", ":"))
    return found if is_encodable(found) else json.dumps(dict(record.metadata), separators=(",", ":"))


def _owner(collection: Collection) -> tuple[bytes, bytes]:
    return binary.integer(collection.id), binary.text(collection.user)
