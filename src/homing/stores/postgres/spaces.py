"""Spaces: one for each model whose vectors are held, with a table of its own, so that widths and models never mix."""

from __future__ import annotations

from homing.errors import DimensionMismatch, InvalidArgument, ModelMismatch
from homing.stores.arguments import is_encodable
from homing.stores.batches import Batch
from homing.stores.postgres.collection import Collection
from homing.stores.postgres.driver import Connection
from homing.stores.postgres.fence import fence_table, is_fenced
from homing.stores.postgres.migrations import lock_number
from homing.stores.postgres.schema import WIDEST, create_vector_table, vector_table

LONGEST_MODEL = 500


def find_space(connection: Connection, model: str, dimensions: int) -> int | None:
    """The space of a model identity."""
    row = connection.execute(
        "SELECT id FROM spaces WHERE model = %s AND dimensions = %s", (model, dimensions)
    ).fetchone()
    return None if row is None else int(row[0])


def checked_model(model: object, dimensions: int) -> None:
    """Refuse what cannot be the identity of a space."""
    if not isinstance(model, str) or len(model) > LONGEST_MODEL or "\0" in model or not is_encodable(model):
        raise InvalidArgument(
            f"model is a text of at most {LONGEST_MODEL} ordinary characters; got {str(model)[:80]!r}"
        )
    if dimensions > WIDEST:
        raise InvalidArgument(f"vectors of {dimensions} dimensions; PostgreSQL holds at most {WIDEST}")


def create_space(connection: Connection, schema: str, model: str, dimensions: int) -> int:
    """The space of a model identity, with its table, made where it does not exist yet."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "schema"),))
        found = find_space(connection, model, dimensions)
        if found is not None:
            return found
        row = connection.execute(
            "INSERT INTO spaces(model, dimensions) VALUES (%s, %s) RETURNING id", (model, dimensions)
        ).fetchone()
        assert row is not None
        space = int(row[0])
        create_vector_table(connection, space, dimensions)
        if is_fenced(connection):
            fence_table(connection, vector_table(space))
        return space


def check_fits(collection: Collection, batch: Batch) -> None:
    """Refuse vectors of another model than those that the collection holds."""
    width = int(batch.vectors.shape[1])
    if collection.model != batch.model:
        raise ModelMismatch(
            f"collection {batch.collection!r} holds vectors of {collection.model!r}, got vectors of {batch.model!r}; "
            "vectors of two models cannot be compared: use that model, or embed the collection again",
            details={"collection": batch.collection, "expected": collection.model, "actual": batch.model},
        )
    if collection.dimensions != width:
        raise DimensionMismatch(
            f"collection {batch.collection!r} holds vectors of {collection.dimensions} dimensions, got {width}; "
            "use the model it was embedded with, or embed it again",
            details={"collection": batch.collection, "expected": collection.dimensions, "actual": width},
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
