"""A second model's vectors beside those that answer; see `homing.stores.switching`.

Every model has a table of vectors of its own already. `aside` lists the spaces that a collection has vectors in which
do not answer. Writers share a collection's row; whoever changes its spaces or adds to them has the row alone, so a
writer always sees them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from homing.records import VectorRecord, text_hash
from homing.stores.batches import Batch
from homing.stores.postgres import writing
from homing.stores.postgres.collection import Collection, find
from homing.stores.postgres.driver import Connection
from homing.stores.postgres.matches import SHOWN
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.spaces import find_space
from homing.stores.postgres.stored_text import unescape
from homing.stores.switching import SpaceInfo, check_width, not_staged, only_vectors, still_answering

ALONE = "NO KEY UPDATE"


@dataclass(frozen=True, slots=True)
class Space:
    """A space that a collection has vectors in."""

    id: int
    info: SpaceInfo


def spaces(connection: Connection, collection: Collection) -> list[Space]:
    """The spaces of a collection, the one that answers first."""
    found = []
    if collection.space is not None:
        info = SpaceInfo(collection.model, collection.dimensions, collection.embedded, True)
        found.append(Space(collection.space, info))
    for number, model, dimensions in connection.execute(
        "SELECT s.id, s.model, s.dimensions FROM aside a JOIN spaces s ON s.id = a.space "
        "WHERE a.collection = %s AND a.user_id = %s ORDER BY s.id",
        (collection.id, collection.user),
    ).fetchall():
        count = _number(
            connection,
            f"SELECT count(*) FROM {vector_table(number)} WHERE collection = %s AND user_id = %s",
            collection,
        )
        found.append(Space(number, SpaceInfo(model, dimensions, count, False)))
    return found


def stage(connection: Connection, collection: Collection, model: str, dimensions: int) -> None:
    """Make room for a model's vectors. Its space must exist."""
    held = spaces(connection, collection)
    same = [one.info for one in held if one.info.model == model]
    check_width(model, dimensions, (one.dimensions for one in same))
    if any(one.active for one in same):
        return
    space = find_space(connection, model, dimensions)
    if space is None:
        raise writing.SpaceMissing(model, dimensions)
    for one in held:
        if one.id != space and not one.info.active and not _only_there(connection, collection, held, one):
            _discard(connection, collection, one)
    connection.execute(
        "INSERT INTO aside(collection, user_id, space) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        (collection.id, collection.user, space),
    )


def missing(
    connection: Connection, collection: Collection, model: str, after: int, count: int
) -> tuple[list[VectorRecord], int]:
    """The next records in the order of their keys that lack a vector of this model, and the key of the last."""
    held = spaces(connection, collection)
    rows = connection.execute(
        f"SELECT {SHOWN}, r.keywords, r.key FROM records r WHERE r.collection = %s AND r.user_id = %s AND r.key > %s "
        f"AND {_lacks(held, model)} ORDER BY r.key LIMIT %s",
        (collection.id, collection.user, after, count),
    ).fetchall()
    return [_record(collection, row) for row in rows], int(rows[-1][-1]) if rows else after


def add(connection: Connection, user: str, batch: Batch) -> int:
    """Give records the vectors of a batch, where they still have the text that was embedded."""
    collection = find(connection, user, batch.collection, lock=ALONE)
    if collection is None or not batch.embedded:
        return 0
    held, width = spaces(connection, collection), int(batch.vectors.shape[1])
    space = next((one for one in held if (one.info.model, one.info.dimensions) == (batch.model, width)), None)
    if space is None:
        raise not_staged(batch.collection, f"{batch.model!r} with {width} dimensions")
    positions = {batch.records[at].id: at for at in batch.embedded}
    there = connection.execute(
        f"SELECT r.id, r.escaped, r.text, r.key FROM records r WHERE r.collection = %s AND r.user_id = %s "
        f"AND r.id = ANY(%s) AND {_lacks(held, batch.model)}",
        (collection.id, collection.user, list(positions)),
    ).fetchall()
    keys = {
        positions[name]: int(key)
        for name, escaped, text, key in there
        if text_hash(unescape(text) if escaped else text) == text_hash(batch.records[positions[name]].text)
    }
    if keys:
        fenced = bool(_number(connection, "SELECT row_security_active('records')::int"))
        tally = writing.Tally()
        place = writing.Place(replace(collection, space=space.id), keys, fenced)
        writing.write_vectors(connection, place, batch, tally)
        if space.info.active:
            writing.add_tally(connection, collection, tally)
    return len(keys)


def activate(connection: Connection, collection: Collection, model: str, *, complete: bool) -> int:
    """Let a model's vectors answer."""
    held = spaces(connection, collection)
    space = next((one for one in held if one.info.model == model), None)
    if space is None:
        raise not_staged(collection.name, repr(model))
    lacking = _number(
        connection,
        f"SELECT count(*) FROM records r WHERE r.collection = %s AND r.user_id = %s AND {_lacks(held, model)}",
        collection,
    )
    if space.info.active or (lacking and complete):
        return lacking
    own = (collection.id, collection.user)
    connection.execute("DELETE FROM aside WHERE collection = %s AND user_id = %s AND space = %s", (*own, space.id))
    if collection.space is not None:
        connection.execute(
            "INSERT INTO aside(collection, user_id, space) VALUES (%s, %s, %s)", (*own, collection.space)
        )
    connection.execute("UPDATE collections SET space = %s WHERE id = %s", (space.id, collection.id))
    writing.add_tally(connection, collection, writing.Tally(embedded=space.info.embedded - collection.embedded))
    return lacking


def discard(connection: Connection, collection: Collection, model: str) -> int:
    """Let go of a model's vectors."""
    held = spaces(connection, collection)
    space = next((one for one in held if one.info.model == model), None)
    if space is None:
        return 0
    if space.info.active:
        raise still_answering(collection.name, model)
    if lost := _only_there(connection, collection, held, space):
        raise only_vectors(collection.name, model, lost)
    _discard(connection, collection, space)
    return space.info.embedded


def _discard(connection: Connection, collection: Collection, space: Space) -> None:
    own = (collection.id, collection.user)
    connection.execute(f"DELETE FROM {vector_table(space.id)} WHERE collection = %s AND user_id = %s", own)
    connection.execute("DELETE FROM aside WHERE collection = %s AND user_id = %s AND space = %s", (*own, space.id))


def _lacks(held: list[Space], model: str) -> str:
    """SQL: record r has a vector in some of these spaces, but none of this model."""
    has = {one.id: f"EXISTS (SELECT FROM {vector_table(one.id)} v WHERE v.record = r.key)" for one in held}
    own = [has[one.id] for one in held if one.info.model == model]
    others = [has[one.id] for one in held if one.info.model != model]
    if not others:
        return "false"
    return f"({' OR '.join(others)})" + "".join(f" AND NOT {one}" for one in own)


def _only_there(connection: Connection, collection: Collection, held: list[Space], space: Space) -> int:
    """How many records have a vector in this space and in no other."""
    nowhere_else = "".join(
        f" AND NOT EXISTS (SELECT FROM {vector_table(one.id)} o WHERE o.record = v.record)"
        for one in held
        if one.id != space.id
    )
    return _number(
        connection,
        f"SELECT count(*) FROM {vector_table(space.id)} v WHERE v.collection = %s AND v.user_id = %s{nowhere_else}",
        collection,
    )


def _number(connection: Connection, query: str, collection: Collection | None = None) -> int:
    row = connection.execute(query, () if collection is None else (collection.id, collection.user)).fetchone()
    assert row is not None
    return int(row[0])


def _record(collection: Collection, row: tuple[Any, ...]) -> VectorRecord:
    name, metadata, escaped, text, words, _ = row
    return VectorRecord(
        id=name,
        collection=collection.name,
        embedding=None,
        metadata=metadata,
        text=unescape(text) if escaped else text,
        keywords=unescape(words) if escaped and words is not None else words,
    )
