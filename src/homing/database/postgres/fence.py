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

# A session that never said who asks reads as nobody: it sees what belongs to nobody in particular, and no user's rows.
_POLICY = "user_id = coalesce(current_setting('homing.user_id', true), '')"
# The tables with rows of users. Others may share the schema with us, and have a column of that name.
_TABLES = (
    "SELECT relname, relrowsecurity FROM pg_class "
    "WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind = 'r' "
    "AND relname ~ "
    "'^(collections|tallies|held|records|words|vectors_[0-9]+|documents|document_(blocks|chunks|settings))$'"
)


def raise_fence(connection: Connection, schema: str) -> None:
    """Fence every table with users' rows. Once up it stays up, for every table that is made in this schema."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "schema"),))
        _fence_all(connection)


def extend_fence(connection: Connection) -> None:
    """Fence the tables that were just made, where the fence is up."""
    if is_fenced(connection):
        _fence_all(connection)


def is_fenced(connection: Connection) -> bool:
    """Whether the fence is up in the schema that this connection looks at."""
    return any(fenced for _, fenced in connection.execute(_TABLES).fetchall())


def _fence_all(connection: Connection) -> None:
    for table, fenced in connection.execute(_TABLES).fetchall():
        if not fenced:
            connection.execute(
                f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; ALTER TABLE {table} FORCE ROW LEVEL SECURITY; "
                f"CREATE POLICY own_rows ON {table} USING ({_POLICY}) WITH CHECK ({_POLICY})"
            )
