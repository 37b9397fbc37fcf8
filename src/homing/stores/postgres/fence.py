"""Row-level security: a second fence around the rows of a user, kept by the server.

The first fence is in our SQL, which always names the user. With this one PostgreSQL itself hides every row whose
`user_id` is not the session's `homing.user_id`, from the owner of the tables too. Superusers, and roles with BYPASSRLS,
see over it: let applications log in as somebody else.

The price: under a policy PostgreSQL does not use an index for operators that it cannot trust not to leak, and those on
arrays are such. Keywords and filters are then looked up within the collection, row by row. For the records of one user
that is fast; for a collection of a million records of everybody it is not.
"""

from __future__ import annotations

from homing.database.postgres.driver import Connection
from homing.database.postgres.locks import lock_number
from homing.stores.postgres.schema import FENCED, vector_table

# A session that never said who asks reads as nobody: it sees what belongs to nobody in particular, and no user's rows.
_POLICY = "user_id = coalesce(current_setting('homing.user_id', true), '')"


def raise_fence(connection: Connection, schema: str) -> None:
    """Fence every table with users' rows. Once up it stays up, for every store on this schema."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "schema"),))
        if is_fenced(connection):
            return
        spaces = connection.execute("SELECT id FROM spaces").fetchall()
        for table in (*FENCED, *(vector_table(space) for (space,) in spaces)):
            fence_table(connection, table)


def fence_table(connection: Connection, table: str) -> None:
    """Put the policy on one table."""
    connection.execute(
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; ALTER TABLE {table} FORCE ROW LEVEL SECURITY; "
        f"CREATE POLICY own_rows ON {table} USING ({_POLICY}) WITH CHECK ({_POLICY})"
    )


def is_fenced(connection: Connection) -> bool:
    """Whether the fence is up in the schema that this connection looks at."""
    row = connection.execute("SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass('records')").fetchone()
    return bool(row and row[0])
