"""The schema that holds our tables: made where there is none, with pgvector, and refused where it is not ours."""

from __future__ import annotations

from homing.database.postgres import tickets
from homing.database.postgres.driver import Connection, psycopg, sql
from homing.database.postgres.locks import lock_number
from homing.errors import InvalidArgument, StoreCorrupt, StoreError, StoreTooOld

OLDEST_PGVECTOR = (0, 8)
"""The first pgvector that goes on looking when a filter has thrown away what it found."""


def checked_schema(name: object) -> str:
    """The name of a schema."""
    if not isinstance(name, str) or not name or "\0" in name or len(name.encode(errors="replace")) > 63:
        raise InvalidArgument(f"schema is a name of at most 63 bytes; got {name!r}")
    return name


def prepare(connection: Connection, schema: str) -> None:
    """Make the schema if need be. Where everything is there, a role that may create nothing is enough."""
    if not _exists(connection, schema) or not _has_tickets(connection, schema) or _pgvector(connection) is None:
        _check_ours(connection, schema)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "schema"),))
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
            connection.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(schema)))
            connection.execute(tickets.TABLE)
            connection.execute("SET LOCAL search_path = DEFAULT")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("", "extension"),))
            if _pgvector(connection) is None:
                _install_pgvector(connection)
    version = _pgvector(connection) or "0"
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PGVECTOR:
        needed = ".".join(map(str, OLDEST_PGVECTOR))
        raise StoreError(f"pgvector {version} is too old; install {needed} and run: ALTER EXTENSION vector UPDATE")
    _check_ours(connection, schema)


def _exists(connection: Connection, schema: str) -> bool:
    return connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is not None


def _has_tickets(connection: Connection, schema: str) -> bool:
    name = sql.Identifier(schema, "tickets").as_string(connection)
    return connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone() == (True,)


def _check_ours(connection: Connection, schema: str) -> None:
    """Refuse a schema that the first edition made, or whose `migrations` are somebody else's."""
    rows = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
        (sql.Identifier(schema, "migrations").as_string(connection),),
    ).fetchall()
    columns = {name for (name,) in rows}
    if not columns or {"component", "number"} <= columns:
        return
    if columns == {"number", "applied"}:
        raise StoreTooOld(
            f"schema {schema!r} was made by the first edition of Homing, which this one does not read; "
            "give another schema and add your texts again",
            details={"schema": schema},
        )
    raise StoreCorrupt(
        f"schema {schema!r} has a table 'migrations' that is not Homing's; give the store a schema of its own",
        details={"schema": schema},
    )


def _install_pgvector(connection: Connection) -> None:
    try:
        connection.execute("CREATE EXTENSION vector")
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            "this role may not install pgvector; let a superuser run in this database: CREATE EXTENSION vector"
        ) from error
    except psycopg.Error as error:
        raise StoreError(f"pgvector cannot be installed on this server: {error}") from error


def _pgvector(connection: Connection) -> str | None:
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    return None if row is None else str(row[0])
