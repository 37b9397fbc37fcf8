"""Rows as matches and records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homing.database.postgres.driver import Connection
from homing.records import Match, VectorRecord
from homing.stores.filters import Filter
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.filtering import conditions
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.stored_text import unescape

SHOWN = "r.id, r.metadata, r.escaped, r.text"
"""The columns of a record that a match shows."""


def match(
    collection: str, columns: Sequence[Any], *, distance: float | None = None, score: float | None = None
) -> Match:
    """The match for the columns `SHOWN` of a row."""
    name, metadata, escaped, text = columns
    return Match(name, collection, distance, metadata, unescape(text) if escaped else text, score)


def records_with_ids(
    connection: Connection, collection: Collection, ids: Sequence[str], *, embeddings: bool = True
) -> list[VectorRecord]:
    """The records of these ids that exist; without `embeddings`, without their vectors."""
    return _whole(connection, collection, "r.id = ANY(%s)", [list(ids)], embeddings=embeddings)


def records_after(connection: Connection, collection: Collection, after: str, count: int) -> list[VectorRecord]:
    """The next records in the order of their ids."""
    return _whole(connection, collection, "r.id > %s ORDER BY r.id LIMIT %s", [after, count])


def texts_of(connection: Connection, collection: Collection, ids: Sequence[str], narrowed: str = "") -> dict[str, str]:
    """The texts of the records `r` of these ids that exist, and fulfil what `narrowed` adds."""
    rows = connection.execute(
        "SELECT r.id, r.escaped, r.text FROM records r "
        f"WHERE r.collection = %s AND r.user_id = %s AND r.id = ANY(%s){narrowed}",
        [collection.id, collection.user, list(ids)],
    ).fetchall()
    return {name: unescape(text) if escaped else text for name, escaped, text in rows}


def ids_of(connection: Connection, collection: Collection, asked: Filter) -> list[str]:
    """Every id that passes a filter, in order."""
    narrowed, values = conditions(collection.id, asked, "r")
    rows = connection.execute(
        f"SELECT id FROM records r WHERE collection = %s AND user_id = %s{narrowed} ORDER BY id",
        [collection.id, collection.user, *values],
    ).fetchall()
    return [name for (name,) in rows]


def _whole(
    connection: Connection, collection: Collection, condition: str, values: list[Any], *, embeddings: bool = True
) -> list[VectorRecord]:
    joined, column = "", "NULL"
    if embeddings and collection.space is not None:
        joined = f"LEFT JOIN {vector_table(collection.space)} v ON v.record = r.key AND v.user_id = r.user_id"
        column = "v.embedding"
    rows = connection.execute(
        f"SELECT {SHOWN}, r.keywords, {column} FROM records r {joined} "
        f"WHERE r.collection = %s AND r.user_id = %s AND {condition}",
        [collection.id, collection.user, *values],
        binary=True,
    ).fetchall()
    return [_record(collection, row) for row in rows]


def _record(collection: Collection, row: Sequence[Any]) -> VectorRecord:
    name, metadata, escaped, text, keywords, embedding = row
    return VectorRecord(
        id=name,
        collection=collection.name,
        embedding=embedding,
        metadata=metadata,
        text=unescape(text) if escaped else text,
        model="" if embedding is None else collection.model,
        keywords=unescape(keywords) if escaped and keywords is not None else keywords,
    )
