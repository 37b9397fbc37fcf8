"""Records as both legs see them."""

from __future__ import annotations

from collections.abc import Sequence

from homing.database.postgres.driver import Connection
from homing.stores.postgres import text_search, vector_search
from homing.stores.postgres.collection import Collection
from homing.stores.store import Measured
from homing.vectors import Vector


def measure(
    connection: Connection, collection: Collection, ids: Sequence[str], vector: Vector | None, query: str
) -> list[Measured]:
    """What the legs would say of the records of these ids that exist, in the order given."""
    cosines = vector_search.cosines(connection, collection, vector, ids)
    relevance = text_search.relevance(connection, collection, query, list(cosines)) if cosines else {}
    return [Measured(name, cosines[name], relevance.get(name, 0.0)) for name in ids if name in cosines]
