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
    if database is not None and (shared := _in_the_same_place(address, database, dimensions, row_security)) is not None:
        return shared
    scheme, separator, rest = address.partition("://")
    place = _place(scheme, rest) if separator else Path(address)
    if existing and place is not None and not place.exists():
        raise NotFound(f"there is no store at {place}; check the address")
    if row_security:
        if scheme not in POSTGRES:
            raise InvalidArgument("row_security is kept by a PostgreSQL server; this store is none: leave it off")
        return _open_postgres(rest, dimensions, row_security=True)
    if not separator:
        if not address.endswith(".db"):
            raise InvalidArgument(
                f"{address!r} is not the address of a store; use one of: {_known()}, or a path ending in .db"
            )
        return _open_file(address, dimensions)
    if scheme not in _SCHEMES:
        raise InvalidArgument(f"no store for {scheme!r}; use one of: {_known()}, or a path ending in .db")
    return _SCHEMES[scheme](rest, dimensions)


def _in_the_same_place(
    address: str, database: Callable[[], Database], dimensions: int | None, row_security: bool
) -> Store | None:
    """A store in the database that rows are kept in; None where the address leads elsewhere, as to LanceDB."""
    if is_postgres(address):
        from homing.database.postgres.database import PostgresDatabase
        from homing.stores.postgres.store import PostgresStore

        server = database()
        assert isinstance(server, PostgresDatabase)
        return PostgresStore(server, dimensions=dimensions, row_security=row_security)
    if not row_security and (address.startswith("sqlite://") or ("://" not in address and address.endswith(".db"))):
        from homing.database.sqlite import SqliteDatabase
        from homing.stores.sqlite.store import SqliteStore

        file = database()
        assert isinstance(file, SqliteDatabase)
        return SqliteStore(file, dimensions=dimensions)
    return None


def _place(scheme: str, rest: str) -> Path | None:
    """Where on this machine a store is; None where it is elsewhere."""
    if scheme == "sqlite":
        return Path(unquote(rest[1:]))
    return Path(unquote(rest)) if scheme == "lance" else None


def _open_sqlite(rest: str, dimensions: int | None) -> Store:
    if not rest.startswith("/") or rest == "/":
        raise InvalidArgument(f"'sqlite://{rest}' names no file; write sqlite:///relative.db or sqlite:////absolute.db")
    return _open_file(unquote(rest[1:]), dimensions)


def _open_file(path: str, dimensions: int | None) -> Store:
    from homing.stores.sqlite.store import SqliteStore

    return SqliteStore(path, dimensions=dimensions)


def _open_postgres(rest: str, dimensions: int | None, *, row_security: bool = False) -> Store:
    from homing.stores.postgres.store import PostgresStore

    url, options = postgres_options(f"postgresql://{rest}")
    return PostgresStore(url, dimensions=dimensions, row_security=row_security, **options)


def _open_lance(scheme: str) -> Callable[[str, int | None], Store]:
    def open_at(rest: str, dimensions: int | None) -> Store:
        from homing.stores.lance import Address, LanceStore

        return LanceStore(Address.of_url(f"{scheme}://{rest}"), dimensions=dimensions)

    return open_at


_SCHEMES: dict[str, Callable[[str, int | None], Store]] = {
    "sqlite": _open_sqlite,
    **dict.fromkeys(POSTGRES, _open_postgres),
    "lance": _open_lance("lance"),
    "s3": _open_lance("s3"),
}


def _known() -> str:
    return ", ".join(f"{scheme}://" for scheme in sorted(_SCHEMES))
