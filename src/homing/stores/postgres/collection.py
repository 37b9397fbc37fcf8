"""Collections: which there are, what is in them, and the spaces that hold their vectors.

A space is one model whose vectors are held, in a table of their own, so that widths and models never mix. What a
collection holds is counted by those who write to it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from homing.database.postgres.driver import Connection
from homing.database.postgres.schema import extend_row_security, lock_number
from homing.errors import InvalidArgument
from homing.stores.arguments import checked_name, is_encodable
from homing.stores.postgres.schema import WIDEST, WIDEST_INLINE, create_vector_table, vector_table
from homing.stores.store import CollectionInfo

MAX_NAME = 2_400
"""Bytes of a collection's name or a record's id: what fits into an entry of an index."""
MAX_MODEL = 500
"""Characters of the identity of a model."""
SHARED, ALONE = "SHARE", "NO KEY UPDATE"
"""How a writer holds a collection: together with others, or alone, to change which model serves it."""
REMEMBERED = 1.0
"""Seconds for which a collection need not be looked up again. Whether it is still the same is checked all the same."""
MAX_REMEMBERED = 1_000
"""Collections that are remembered."""
FOLD_AT = 64
"""Tally rows of a collection after which they are folded into one."""

_COUNTS = (
    "LEFT JOIN LATERAL (SELECT count(*) AS rows, coalesce(sum(t.records), 0)::bigint AS records, "
    "coalesce(sum(t.embedded), 0)::bigint AS embedded "
    "FROM tallies t WHERE t.collection = c.id AND t.user_id = c.user_id) t ON true"
)


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as it was when it was looked up. `space` is None while nothing in it has a vector."""

    id: int
    name: str
    user: str
    space: int | None
    model: str
    dimensions: int
    indexed: bool
    """Whether the vectors of its space have an index."""
    space_rows: int
    """How many vectors its space holds, of all collections and users, roughly."""
    records: int
    embedded: int
    tallies: int
    """Rows that its counts are the sum of."""
    row_security: bool
    """Whether the server shows this session the rows of one user only."""

    @property
    def share(self) -> float:
        """Which part of the vectors of its space are its own."""
        return self.embedded / max(self.space_rows, self.embedded, 1)


@dataclass(frozen=True, slots=True)
class Space:
    """A model whose vectors are held."""

    id: int
    model: str
    dimensions: int
    indexed: bool
    rows: int
    """How many vectors it holds, of all collections and users, roughly."""


class SpaceMissing(Exception):
    """A model has no space yet. It is made in a transaction of its own, then the write is done again."""

    def __init__(self, model: str, dimensions: int) -> None:
        super().__init__(model)
        self.model = model
        self.dimensions = dimensions


@dataclass(slots=True)
class Tally:
    """How much a write has added: records, and vectors of the model that serves the collection."""

    records: int = 0
    embedded: int = 0


class CollectionCache:
    """The collections of a store and of the views of its users."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[float, Collection]] = {}

    def get(self, user: str, name: str) -> Collection | None:
        """The collection, if it was looked up a moment ago."""
        until, found = self._seen.get((user, name), (0.0, None))
        return found if time.monotonic() < until else None

    def keep(self, collection: Collection) -> None:
        """Remember a collection."""
        if len(self._seen) >= MAX_REMEMBERED:
            self._seen.clear()
        self._seen[collection.user, collection.name] = (time.monotonic() + REMEMBERED, collection)


def rows_in(space: str) -> str:
    """SQL for how many vectors a space holds, roughly: from the size of its table, which costs nothing to ask."""
    width = f"CASE WHEN {space}.dimensions <= {WIDEST_INLINE} THEN 4 * {space}.dimensions + 80 ELSE 110 END"
    return f"pg_relation_size(to_regclass('vectors_' || {space}.id)) / ({width})"


_COLUMNS = f"s.id, s.model, s.dimensions, s.indexed, {rows_in('s')}"


def stored_name(value: object, what: str) -> str:
    """A name that fits into an index."""
    name = checked_name(value, what)
    if len(name) * 4 > MAX_NAME and len(name.encode()) > MAX_NAME:
        raise InvalidArgument(f"{what} takes {len(name.encode())} bytes; PostgreSQL can index {MAX_NAME}: shorten it")
    return name


def find(connection: Connection, user: str, name: str, lock: str = "") -> Collection | None:
    """The collection of a user that has this name, if there is one; with a lock (`SHARE` …), held until the commit."""
    row = connection.execute(
        "SELECT c.id, c.name, c.user_id, c.space, coalesce(s.model, ''), coalesce(s.dimensions, 0), "
        f"coalesce(s.indexed, false), coalesce({rows_in('s')}, 0), "
        "t.records, t.embedded, t.rows, row_security_active('records') "
        f"FROM collections c LEFT JOIN spaces s ON s.id = c.space {_COUNTS} WHERE c.user_id = %s AND c.name = %s "
        f"{f'FOR {lock} OF c' if lock else ''}",
        (user, name),
    ).fetchone()
    return None if row is None else Collection(*row)


def listed(connection: Connection, user: str) -> list[CollectionInfo]:
    """The collections of a user that have records, by name."""
    return [
        CollectionInfo(*row)
        for row in connection.execute(
            "SELECT c.name, t.records, t.embedded, coalesce(s.model, ''), coalesce(s.dimensions, 0) "
            f"FROM collections c LEFT JOIN spaces s ON s.id = c.space {_COUNTS} "
            "WHERE c.user_id = %s AND t.records > 0 ORDER BY c.name",
            (user,),
        ).fetchall()
    ]


def add_tally(connection: Connection, collection: Collection, tally: Tally) -> None:
    """Count what a write has added."""
    if tally == Tally():
        return
    own = (collection.id, collection.user)
    connection.execute(
        "INSERT INTO tallies(collection, user_id, records, embedded) VALUES (%s, %s, %s, %s)",
        (*own, tally.records, tally.embedded),
    )
    if collection.tallies > FOLD_AT:
        # Rows that another writer is folding are left to it.
        connection.execute(
            "WITH old AS (DELETE FROM tallies WHERE ctid IN (SELECT ctid FROM tallies "
            "WHERE collection = %s AND user_id = %s FOR UPDATE SKIP LOCKED) RETURNING records, embedded) "
            "INSERT INTO tallies(collection, user_id, records, embedded) "
            "SELECT %s, %s, sum(records), sum(embedded) FROM old HAVING count(*) > 0",
            own + own,
        )


def find_space(connection: Connection, model: str, dimensions: int) -> Space:
    """The space of a model; raises SpaceMissing where there is none."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM spaces s WHERE s.model = %s AND s.dimensions = %s", (model, dimensions)
    ).fetchone()
    if row is None:
        raise SpaceMissing(model, dimensions)
    return Space(*row)


def create_space(schema: str, model: str, dimensions: int, connection: Connection) -> None:
    """The space of a model, with its table, made where it does not exist yet."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "schema"),))
    row = connection.execute(
        "INSERT INTO spaces(model, dimensions) VALUES (%s, %s) ON CONFLICT (model, dimensions) DO NOTHING RETURNING id",
        (model, dimensions),
    ).fetchone()
    if row is not None:
        create_vector_table(connection, row[0], dimensions)
        extend_row_security(connection)


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


def checked_model(model: object, dimensions: int) -> None:
    """Refuse what cannot be the identity of a space."""
    if not isinstance(model, str) or len(model) > MAX_MODEL or "\0" in model or not is_encodable(model):
        raise InvalidArgument(f"model is a text of at most {MAX_MODEL} ordinary characters; got {str(model)[:80]!r}")
    if dimensions > WIDEST:
        raise InvalidArgument(f"vectors of {dimensions} dimensions; PostgreSQL holds at most {WIDEST}")
