"""Records read back, which of them pass a filter, and the vectors that they have.

A filter becomes SQL: equality on the array of a record's attributes, everything else on the metadata itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homing.database.postgres.driver import Connection
from homing.records import Match, VectorRecord
from homing.stores.filters import AllOf, AnyOf, Compares, Condition, Exists, Filter, Has, Not
from homing.stores.postgres.collection import Collection, held, vectors_in
from homing.stores.postgres.rows import label, unescape
from homing.stores.postgres.schema import vector_table
from homing.stores.store import ModelInfo

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
    return _records(connection, collection, "r.id = ANY(%s)", [list(ids)], embeddings=embeddings)


def records_after(connection: Connection, collection: Collection, after: str, count: int) -> list[VectorRecord]:
    """The next records in the order of their ids."""
    return _records(connection, collection, "r.id > %s ORDER BY r.id LIMIT %s", [after, count])


def texts(connection: Connection, collection: Collection, ids: Sequence[str], lacking: str) -> dict[str, str]:
    """The texts of the records of these ids that exist; with a model that they lack, of those without its vector."""
    narrowed = _lacking(connection, collection, lacking) if lacking else ""
    rows = connection.execute(
        "SELECT r.id, r.escaped, r.text FROM records r "
        f"WHERE r.collection = %s AND r.user_id = %s AND r.id = ANY(%s){narrowed}",
        [collection.id, collection.user, list(ids)],
    ).fetchall()
    return {name: unescape(text) if escaped else text for name, escaped, text in rows}


def ids_of(connection: Connection, collection: Collection, asked: Filter) -> list[str]:
    """Every id that passes a filter, in order."""
    narrowed, values = conditions(collection, asked, "r")
    rows = connection.execute(
        f"SELECT id FROM records r WHERE collection = %s AND user_id = %s{narrowed} ORDER BY id",
        [collection.id, collection.user, *values],
    ).fetchall()
    return [name for (name,) in rows]


def models(connection: Connection, collection: Collection) -> list[ModelInfo]:
    """The models whose vectors are held, the one that serves the collection first."""
    counted = [(one, vectors_in(connection, collection, one.id)) for one in held(connection, collection)]
    return [ModelInfo(one.model, one.dimensions, count, one.id == collection.space) for one, count in counted if count]


def missing(connection: Connection, collection: Collection, model: str, after: str, limit: int) -> list[str]:
    """The next ids of records that have no vector of a model."""
    rows = connection.execute(
        "SELECT r.id FROM records r WHERE r.collection = %s AND r.user_id = %s AND r.id > %s"
        f"{_lacking(connection, collection, model)} ORDER BY r.id LIMIT %s",
        (collection.id, collection.user, after, limit),
    ).fetchall()
    return [name for (name,) in rows]


def conditions(collection: Collection, asked: Filter, row: str) -> tuple[str, list[Any]]:
    """`AND …` for each condition of a filter on a row of `records`, and the values it compares with."""
    found = [_condition(collection.id, one, row) for one in asked]
    return "".join(f" AND {sql}" for sql, _ in found), [value for _, bound in found for value in bound]


def _condition(collection: int, one: Condition, row: str) -> tuple[str, list[Any]]:
    match one:
        case Has(key, accepted):
            return f"{row}.attributes && %s::text[]", [[label(collection, key, value) for value in accepted]]
        case Exists(key):
            return f"({row}.metadata -> %s) IS NOT NULL", [key]
        case Compares(key, sign, value):
            # A list is met when one of its items is. A text with NUL in it has no form as a value of the server.
            kind, written = ("string", 'COLLATE "C"') if isinstance(value, str) else ("number", "::numeric")
            compared = f"((item #>> '{{}}') {written} {sign} %s{'' if isinstance(value, str) else '::numeric'})"
            known = f"json_typeof(item) = '{kind}' AND strpos(item::text, '\\u0000') = 0"
            sql = (
                f"EXISTS (SELECT 1 FROM json_array_elements(CASE json_typeof({row}.metadata -> %s) WHEN 'array' "
                f"THEN {row}.metadata -> %s ELSE json_build_array({row}.metadata -> %s) END) AS items(item) "
                f"WHERE CASE WHEN {known} THEN {compared} ELSE false END)"
            )
            return sql, [key, key, key, value]
        case Not(part):
            sql, values = _condition(collection, part, row)
            return f"NOT {sql}", values
        case AnyOf(parts) | AllOf(parts):
            found = [_condition(collection, part, row) for part in parts]
            joint = " OR " if isinstance(one, AnyOf) else " AND "
            return f"({joint.join(sql for sql, _ in found)})", [value for _, bound in found for value in bound]


def _lacking(connection: Connection, collection: Collection, model: str) -> str:
    """`AND …` for a record `r` without a vector of a model."""
    return "".join(
        f" AND NOT EXISTS (SELECT FROM {vector_table(one.id)} v WHERE v.record = r.key)"
        for one in held(connection, collection)
        if one.model == model
    )


def _records(
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
