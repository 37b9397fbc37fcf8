"""The models of a collection: whose vectors it holds, which of them serves it, and what one has not embedded yet.

Whoever puts a vector holds the collection together with other writers, and the record; whoever changes which model
serves the collection holds it alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from homing.database.postgres.driver import Connection
from homing.errors import InvalidArgument
from homing.stores.arguments import Batch
from homing.stores.postgres.collection import Collection, find
from homing.stores.postgres.matches import texts_of
from homing.stores.postgres.rows import copy_vectors
from homing.stores.postgres.schema import vector_table
from homing.stores.postgres.spaces import (
    ALONE,
    Space,
    check_width,
    find_space,
    held,
    hold,
    joined,
    search_space,
    vectors_in,
)
from homing.stores.postgres.tallies import Tally, add_tally
from homing.stores.postgres.writing import locked
from homing.stores.store import ModelInfo


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


def texts(connection: Connection, collection: Collection, ids: Sequence[str], model: str) -> dict[str, str]:
    """The texts of the records of these ids that exist; with a model, of those that have no vector of it."""
    return texts_of(connection, collection, ids, _lacking(connection, collection, model) if model else "")


def _lacking(connection: Connection, collection: Collection, model: str) -> str:
    """`AND …` for a record `r` without a vector of a model."""
    return "".join(
        f" AND NOT EXISTS (SELECT FROM {vector_table(one.id)} v WHERE v.record = r.key)"
        for one in held(connection, collection)
        if one.model == model
    )


def put(connection: Connection, user: str, batch: Batch, hashes: Mapping[str, str]) -> tuple[set[str], Space | None]:
    """Give records the vectors of a batch, where a text has the hash by its id; returns whose got one, and where."""
    width = int(batch.vectors.shape[1])
    collection = joined(connection, user, batch.collection, batch.model, width)
    if collection is None:
        return set(), None
    space = _space(connection, collection, batch.model, width)
    there = locked(connection, collection, list(hashes))
    rows = [
        (row, there[name])
        for row, name in enumerate(batch.records[index].id for index in batch.embedded)
        if name in there and there[name].hash.hex() == hashes[name]
    ]
    if not rows:
        return set(), None
    keys = [stored.key for _, stored in rows]
    hold(connection, collection, space.id)
    replaced = connection.execute(f"DELETE FROM {vector_table(space.id)} WHERE record = ANY(%s)", (keys,)).rowcount
    vectors = batch.vectors[[row for row, _ in rows]]
    copy_vectors(connection, collection, space.id, keys, [stored.hash for _, stored in rows], vectors)
    if space.id == collection.space:
        add_tally(connection, collection, Tally(embedded=len(keys) - replaced))
    return {batch.records[batch.embedded[row]].id for row, _ in rows}, space


def serve(connection: Connection, user: str, name: str, model: str) -> None:
    """Let the vectors of a model be searched."""
    collection = _alone(connection, user, name)
    if collection is None or (collection.model == model and collection.embedded):
        return
    for one in held(connection, collection):
        if one.model == model and vectors_in(connection, collection, one.id):
            search_space(connection, collection, one.id)
            return
    raise InvalidArgument(f"collection {name!r} has no vectors of {model!r}; embed it with that model first")


def discard(connection: Connection, user: str, name: str, model: str) -> int:
    """Let go of the vectors of a model; returns how many there were."""
    collection = _alone(connection, user, name)
    if collection is None:
        return 0
    if collection.model == model and collection.embedded:
        raise InvalidArgument(f"the vectors of {model!r} serve collection {name!r}; let others serve it first")
    own = (collection.id, collection.user)
    gone = 0
    for one in held(connection, collection):
        if one.model == model and one.id != collection.space:
            gone += connection.execute(
                f"DELETE FROM {vector_table(one.id)} WHERE collection = %s AND user_id = %s", own
            ).rowcount
            connection.execute("DELETE FROM held WHERE collection = %s AND user_id = %s AND space = %s", (*own, one.id))
    return gone


def _alone(connection: Connection, user: str, name: str) -> Collection | None:
    """The collection, held alone until the commit, as those who had it before have left it."""
    return find(connection, user, name, lock=ALONE) and find(connection, user, name)


def _space(connection: Connection, collection: Collection, model: str, width: int) -> Space:
    """Where the vectors of a model go, which must be as wide as those that are there."""
    for one in held(connection, collection):
        if one.model == model and one.dimensions != width and vectors_in(connection, collection, one.id):
            check_width(collection.name, model, one.dimensions, width)
    return find_space(connection, model, width)
