"""Numbered steps that bring a schema up to date, one process at a time."""

from __future__ import annotations

import hashlib
import logging

from homing.errors import InvalidArgument, StoreCorrupt, StoreError, StoreTooNew
from homing.stores.postgres.driver import Connection, psycopg, sql
from homing.stores.postgres.schema import STEPS, TABLES

logger = logging.getLogger(__name__)

OLDEST_PGVECTOR = (0, 8)
"""The first pgvector that goes on looking when a filter has thrown away what it found."""


def checked_schema(name: object) -> str:
    """The name of a schema."""
    if not isinstance(name, str) or not name or "\0" in name or len(name.encode(errors="replace")) > 63:
        raise InvalidArgument(f"schema is a name of at most 63 bytes; got {name!r}")
    return name


def lock_number(schema: str, what: str) -> int:
    """The advisory lock that stands for something in a schema."""
    digest = hashlib.blake2b(f"homing {what} {schema}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def migrate(connection: Connection, schema: str) -> None:
    """Make the schema, or bring it up to date. Many processes may do so at once: one of them does the work."""
    if _is_current(connection, schema):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "schema"),))
        # Where everything is there already, a role without the right to create anything can still open the store.
        if _is_current(connection, schema):
            return
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("", "extension"),))
        _install_pgvector(connection)
        connection.execute("SELECT set_config('search_path', %s, true)", (search_path(connection, schema),))
        done = _applied(connection, schema)
        if done is None:
            _check_unused(connection, schema)
            connection.execute(
                "CREATE TABLE migrations(number integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
            )
        for number, step in enumerate(STEPS[done or 0 :], start=(done or 0) + 1):
            connection.execute(step.encode())
            connection.execute("INSERT INTO migrations(number) VALUES (%s)", (number,))
            logger.info("schema %s: applied step %d", schema, number)


def search_path(connection: Connection, schema: str) -> str:
    """Where names are looked up: our tables, then the types of pgvector, wherever they were installed."""
    row = connection.execute(
        "SELECT quote_ident(%s) || coalesce((SELECT ', ' || quote_ident(n.nspname) FROM pg_extension e "
        "JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'), '')",
        (schema,),
    ).fetchone()
    assert row is not None
    return str(row[0])


def _is_current(connection: Connection, schema: str) -> bool:
    return _applied(connection, schema) == len(STEPS)


def _applied(connection: Connection, schema: str) -> int | None:
    table = sql.Identifier(schema, "migrations")
    there = connection.execute("SELECT to_regclass(%s)", (table.as_string(connection),)).fetchone()
    if there is None or there[0] is None:
        return None
    row = connection.execute(sql.SQL("SELECT coalesce(max(number), 0) FROM {}").format(table)).fetchone()
    found = int(row[0]) if row else 0
    if found > len(STEPS):
        raise StoreTooNew(
            f"schema {schema!r} is at step {found}, this Homing knows {len(STEPS)}; upgrade Homing to open it",
            details={"schema": schema, "found": found, "known": len(STEPS)},
        )
    return found


def _check_unused(connection: Connection, schema: str) -> None:
    row = connection.execute(
        "SELECT string_agg(tablename, ', ' ORDER BY tablename) FROM pg_tables "
        "WHERE schemaname = %s AND tablename = ANY(%s)",
        (schema, ["migrations", *TABLES]),
    ).fetchone()
    if row is not None and row[0]:
        raise StoreCorrupt(
            f"schema {schema!r} has tables that are not Homing's ({row[0]}); give the store a schema of its own",
            details={"schema": schema, "tables": row[0]},
        )


def _install_pgvector(connection: Connection) -> None:
    version = _pgvector(connection)
    if version is None:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreError(
                "this role may not install pgvector; let a superuser run in this database: CREATE EXTENSION vector"
            ) from error
        except psycopg.Error as error:
            raise StoreError(f"pgvector cannot be installed on this server: {error}") from error
        version = _pgvector(connection) or ""
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PGVECTOR:
        needed = ".".join(map(str, OLDEST_PGVECTOR))
        raise StoreError(f"pgvector {version} is too old; install {needed} and run: ALTER EXTENSION vector UPDATE")


def _pgvector(connection: Connection) -> str | None:
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    return None if row is None else str(row[0])
