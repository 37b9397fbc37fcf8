"""Collections: which there are, what is in them, and which model's vectors they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from homing.database.postgres.driver import Connection
from homing.errors import InvalidArgument
from homing.stores.arguments import checked_name
from homing.stores.postgres.schema import WIDEST_INLINE
from homing.stores.store import CollectionInfo

MAX_NAME = 2_400
"""Bytes of a collection's name or a record's id: what fits into an entry of an index."""

_COUNTS = (
    "LEFT JOIN LATERAL (SELECT count(*) AS rows, sum(t.records)::bigint AS records, "
    "sum(t.embedded)::bigint AS embedded, sum(t.words)::bigint AS words "
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
    words: int
    tallies: int
    """Rows that its counts are the sum of."""
    fenced: bool
    """Whether the server shows this session the rows of one user only."""

    @property
    def share(self) -> float:
        """Which part of the vectors of its space are its own."""
        return self.embedded / max(self.space_rows, self.embedded, 1)


def stored_name(value: object, what: str) -> str:
    """A name that fits into an index."""
    name = checked_name(value, what)
    if len(name) * 4 > MAX_NAME and len(name.encode()) > MAX_NAME:
        raise InvalidArgument(f"{what} takes {len(name.encode())} bytes; PostgreSQL can index {MAX_NAME}: shorten it")
    return name


def rows_in(space: str) -> str:
    """SQL for how many vectors a space holds, roughly: from the size of its table, which costs nothing to ask."""
    width = f"CASE WHEN {space}.dimensions <= {WIDEST_INLINE} THEN 4 * {space}.dimensions + 80 ELSE 110 END"
    return f"pg_relation_size(to_regclass('vectors_' || {space}.id)) / ({width})"


def find(connection: Connection, user: str, name: str, lock: str = "") -> Collection | None:
    """The collection of a user that has this name, if there is one; with a lock (`SHARE` …), held until the commit."""
    row = connection.execute(
        "SELECT c.id, c.space, s.model, s.dimensions, s.indexed, "
        f"{rows_in('s')}, t.records, t.embedded, t.words, t.rows, row_security_active('records') "
        f"FROM collections c LEFT JOIN spaces s ON s.id = c.space {_COUNTS} WHERE c.user_id = %s AND c.name = %s "
        f"{f'FOR {lock} OF c' if lock else ''}",
        (user, name),
    ).fetchone()
    return None if row is None else _made(name, user, row)


def _made(name: str, user: str, row: tuple[Any, ...]) -> Collection:
    number, space, model, dimensions, indexed, rows, records, embedded, words, tallies, fenced = row
    return Collection(
        number, name, user, space, model or "", dimensions or 0, bool(indexed), rows or 0,
        records or 0, embedded or 0, words or 0, tallies, fenced,
    )  # fmt: skip


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
