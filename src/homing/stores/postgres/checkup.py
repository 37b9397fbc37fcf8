"""Whether the tables agree: for every record its words, for every vector its record, and counts that are right."""

from __future__ import annotations

from collections.abc import Iterator

from homing.stores.postgres.driver import Connection, sql
from homing.stores.postgres.schema import vector_table


def findings(connection: Connection, user: str) -> Iterator[str]:
    """What is wrong, a sentence each. Reads everything that may be seen: seconds for a million records."""
    # A user's view looks at that user's rows; the store itself at everybody's.
    mine = sql.SQL("user_id = {}").format(sql.Literal(user)) if user else sql.SQL("true")
    for name, counted, there in connection.execute(
        sql.SQL(
            "SELECT name, counted, there FROM (SELECT c.name, "
            "(SELECT coalesce(sum(t.records), 0) FROM tallies t WHERE t.collection = c.id) AS counted, "
            "(SELECT count(*) FROM records r WHERE r.collection = c.id) AS there "
            "FROM collections c WHERE {}) x WHERE counted <> there ORDER BY name"
        ).format(mine)
    ).fetchall():
        yield f"collection {name!r} counts {counted} records and has {there}"
    yield from _stray(
        connection, mine, "records", "collection NOT IN (SELECT id FROM collections)", "records belong to no collection"
    )
    yield from _stray(
        connection,
        mine,
        "records",
        "NOT EXISTS (SELECT FROM words w WHERE w.record = key)",
        "records are missing from the keyword index",
    )
    belongs_to_none = "NOT EXISTS (SELECT FROM records r WHERE r.key = record AND r.user_id = x.user_id)"
    yield from _stray(connection, mine, "words", belongs_to_none, "entries of the keyword index belong to no record")
    for space, model in connection.execute("SELECT id, model FROM spaces ORDER BY id").fetchall():
        table = vector_table(space)
        yield from _stray(connection, mine, table, belongs_to_none, f"vectors of {model!r} belong to no record")
        for name, counted, there in connection.execute(
            sql.SQL(
                "SELECT name, counted, there FROM (SELECT c.name, "
                "(SELECT coalesce(sum(t.embedded), 0) FROM tallies t WHERE t.collection = c.id) AS counted, "
                f"(SELECT count(*) FROM {table} v WHERE v.collection = c.id) AS there "
                "FROM collections c WHERE c.space = {} AND {}) x WHERE counted <> there ORDER BY name"
            ).format(sql.Literal(space), mine)
        ).fetchall():
            yield f"collection {name!r} counts {counted} vectors and has {there}"


def _stray(connection: Connection, mine: sql.Composable, table: str, condition: str, told: str) -> Iterator[str]:
    row = connection.execute(
        sql.SQL(f"SELECT count(*) FROM {table} x WHERE {{}} AND {condition}").format(mine)
    ).fetchone()
    if row is not None and row[0]:
        yield f"{row[0]} {told}"
