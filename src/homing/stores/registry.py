"""Where the address of a store becomes a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from homing.database import Database
from homing.database.lazy import POSTGRES, is_postgres, postgres_options
from homing.errors import InvalidArgument, NotFound
from homing.stores.store import Store


def open_store(
    url: str | Path,
    *,
    dimensions: int | None = None,
    row_security: bool = False,
    existing: bool = False,
    database: Callable[[], Database] | None = None,
) -> Store:
    """Open the store at an address, made there if nothing is; with `existing` that is refused with NotFound.

    `sqlite:///relative.db`, `sqlite:////absolute/path.db`, or a plain path that ends in `.db`;
    `lance://relative/folder`, `lance:///absolute/folder`, `s3://bucket/prefix?region=…`;
    `postgresql://user:password@host:port/database`, to which `?schema=…&read_url=…&statement_timeout=…` may be added
    (the name of the schema, the escaped address of a replica, seconds). `dimensions` is the width that every vector
    must have; without it each collection takes the width of its first vector. `row_security` lets a PostgreSQL server
    keep users apart. `database` opens the one that an app keeps its rows in: a store in the same place shares it.
    """
    address = str(url)
    scheme, separator, rest = address.partition("://")
    if database is not None and is_postgres(address):
        return _postgres(database(), dimensions, row_security)
    if database is not None and not row_security and (scheme == "sqlite" if separator else address.endswith(".db")):
        return _sqlite(database(), dimensions)
    place = _place(scheme, rest) if separator else Path(address)
    if existing and place is not None and not place.exists():
        raise NotFound(f"there is no store at {place}; check the address")
    if row_security and scheme not in POSTGRES:
        raise InvalidArgument("row_security is kept by a PostgreSQL server; this store is none: leave it off")
    if not separator:
        if not address.endswith(".db"):
            raise InvalidArgument(f"{address!r} is not the address of a store; use one of: {_KNOWN}")
        return _sqlite(address, dimensions)
    if scheme == "sqlite":
        if not rest.startswith("/") or rest == "/":
            raise InvalidArgument(f"{address!r} names no file; write sqlite:///relative.db or sqlite:////absolute.db")
        return _sqlite(unquote(rest[1:]), dimensions)
    if scheme in POSTGRES:
        return _postgres(address, dimensions, row_security)
    if scheme in ("lance", "s3"):
        from homing.stores.lance import Address, LanceStore

        return LanceStore(Address.of_url(address), dimensions=dimensions)
    raise InvalidArgument(f"no store for {scheme!r}; use one of: {_KNOWN}")


_KNOWN = "lance://, postgres://, postgresql://, s3://, sqlite://, or a path ending in .db"


def _place(scheme: str, rest: str) -> Path | None:
    """Where on this machine a store is; None where it is elsewhere."""
    if scheme == "sqlite":
        return Path(unquote(rest[1:]))
    return Path(unquote(rest)) if scheme == "lance" else None


def _sqlite(place: str | Database, dimensions: int | None) -> Store:
    from homing.database.sqlite import SqliteDatabase
    from homing.stores.sqlite.store import SqliteStore

    assert isinstance(place, str | SqliteDatabase)
    return SqliteStore(place, dimensions=dimensions)


def _postgres(place: str | Database, dimensions: int | None, row_security: bool) -> Store:
    from homing.database.postgres.database import PostgresDatabase
    from homing.stores.postgres.store import PostgresStore

    if isinstance(place, str):
        url, options = postgres_options(place)
        return PostgresStore(url, dimensions=dimensions, row_security=row_security, **options)
    assert isinstance(place, PostgresDatabase)
    return PostgresStore(place, dimensions=dimensions, row_security=row_security)
