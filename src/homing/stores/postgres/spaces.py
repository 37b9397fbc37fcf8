"""Spaces: one for each model whose vectors are held, with a table of its own, so that widths and models never mix."""

from __future__ import annotations

from dataclasses import dataclass

from homing.database.postgres.driver import Connection
from homing.database.postgres.schema import extend_fence, lock_number
from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch
from homing.stores.arguments import is_encodable
from homing.stores.postgres.collection import Collection, find, rows_in
from homing.stores.postgres.schema import WIDEST, create_vector_table, vector_table
from homing.stores.postgres.tallies import Tally, add_tally

MAX_MODEL = 500

SHARED, ALONE = "SHARE", "NO KEY UPDATE"
"""How a writer holds a collection: together with others, or alone, to change which model serves it."""


class SpaceMissing(Exception):
    """A model has no space yet. It is made in a transaction of its own, then the write is done again."""

    def __init__(self, model: str, dimensions: int) -> None:
        super().__init__(model)
        self.model = model
        self.dimensions = dimensions


@dataclass(frozen=True, slots=True)
class Space:
    """A model whose vectors are held."""

    id: int
    model: str
    dimensions: int
    indexed: bool
    rows: int
    """How many vectors it holds, of all collections and users, roughly."""


_COLUMNS = f"s.id, s.model, s.dimensions, s.indexed, {rows_in('s')}"


def find_space(connection: Connection, model: str, dimensions: int) -> Space:
    """The space of a model; raises SpaceMissing where there is none."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM spaces s WHERE s.model = %s AND s.dimensions = %s", (model, dimensions)
    ).fetchone()
    if row is None:
        raise SpaceMissing(model, dimensions)
    return Space(*row)


def held(connection: Connection, collection: Collection) -> list[Space]:
    """The spaces that a collection has vectors in, or had; the one that is searched first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM held h JOIN spaces s ON s.id = h.space WHERE h.collection = %s AND h.user_id = %s "
        "ORDER BY s.id = %s DESC, s.id",
        (collection.id, collection.user, collection.space),
    ).fetchall()
    return [Space(*row) for row in rows]


def hold(connection: Connection, collection: Collection, space: int) -> None:
    """Remember that a collection has vectors in a space."""
    connection.execute(
        "INSERT INTO held(collection, user_id, space) VALUES (%s, %s, %s) ON CONFLICT (collection, space) DO NOTHING",
        (collection.id, collection.user, space),
    )


def vectors_in(connection: Connection, collection: Collection, space: int) -> int:
    """How many vectors a collection has in a space."""
    row = connection.execute(
        f"SELECT count(*) FROM {vector_table(space)} WHERE collection = %s AND user_id = %s",
        (collection.id, collection.user),
    ).fetchone()
    assert row is not None
    return int(row[0])


def search_space(connection: Connection, collection: Collection, space: int) -> None:
    """Let a collection, which must be held alone, be searched by the vectors of a space."""
    connection.execute("UPDATE collections SET space = %s WHERE id = %s", (space, collection.id))
    hold(connection, collection, space)
    counted = vectors_in(connection, collection, space) - collection.embedded
    add_tally(connection, collection, Tally(embedded=counted))


def joined(connection: Connection, user: str, name: str, model: str = "", width: int = 0) -> Collection | None:
    """The collection of this name, if there is one, held until the commit together with other writers.

    Given a model of some width: where nothing has a vector, the collection is served by that model from now on.
    """
    if not width:
        return find(connection, user, name, lock=SHARED)
    known = find(connection, user, name)
    if known is None or not _takes(known, model, width):
        return known and find(connection, user, name, lock=SHARED)
    # Writers share a collection. The one that gives it another model must have it alone.
    if find(connection, user, name, lock=ALONE) is None:
        return None
    # Counted anew: writers that were waited for have written since the question above was begun.
    known = find(connection, user, name)
    if known is not None and _takes(known, model, width):
        search_space(connection, known, find_space(connection, model, width).id)
        known = find(connection, user, name)
    return known


def _takes(collection: Collection, model: str, width: int) -> bool:
    same = (collection.model, collection.dimensions) == (model, width)
    return collection.space is None or (not same and collection.embedded == 0)


def create_space(schema: str, model: str, dimensions: int, connection: Connection) -> None:
    """The space of a model, with its table, made where it does not exist yet."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "schema"),))
        row = connection.execute(
            "INSERT INTO spaces(model, dimensions) VALUES (%s, %s) ON CONFLICT (model, dimensions) DO NOTHING "
            "RETURNING id",
            (model, dimensions),
        ).fetchone()
        if row is None:
            return
        create_vector_table(connection, row[0], dimensions)
        extend_fence(connection)


def checked_model(model: object, dimensions: int) -> None:
    """Refuse what cannot be the identity of a space."""
    if not isinstance(model, str) or len(model) > MAX_MODEL or "\0" in model or not is_encodable(model):
        raise InvalidArgument(f"model is a text of at most {MAX_MODEL} ordinary characters; got {str(model)[:80]!r}")
    if dimensions > WIDEST:
        raise InvalidArgument(f"vectors of {dimensions} dimensions; PostgreSQL holds at most {WIDEST}")


def check_fits(collection: Collection, model: str, width: int) -> None:
    """Refuse vectors of another model than the one that serves the collection."""
    if collection.model != model:
        raise ModelMismatch(
            f"collection {collection.name!r} holds vectors of {collection.model!r}, got vectors of {model!r}; "
            "vectors of two models cannot be compared: use that model, or embed the collection again",
            details={"collection": collection.name, "expected": collection.model, "actual": model},
        )
    check_width(collection.name, model, collection.dimensions, width)


def check_width(collection: str, model: str, expected: int, width: int) -> None:
    """Refuse vectors that are not as wide as those of the same model."""
    if width != expected:
        raise DimensionMismatch(
            f"collection {collection!r} holds vectors of {model!r} with {expected} dimensions, got {width}; "
            "use the model it was embedded with, or embed it again",
            details={"collection": collection, "expected": expected, "actual": width},
        )


def check_query(collection: Collection, width: int, model: str) -> None:
    """Refuse a query vector that cannot be compared with those of the collection."""
    if model and model != collection.model:
        raise ModelMismatch(
            f"collection {collection.name!r} holds vectors of {collection.model!r}, the query is one of {model!r}; "
            "ask with the model of the collection, or embed the collection again",
            details={"expected": collection.model, "actual": model},
        )
    if width != collection.dimensions:
        raise DimensionMismatch(
            f"collection {collection.name!r} holds vectors of {collection.dimensions} dimensions, "
            f"the query has {width}; embed it with the model of the collection",
            details={"expected": collection.dimensions, "actual": width},
        )
