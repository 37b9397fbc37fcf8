"""Where the address of a store becomes a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from homing.database import Database
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
    if database is not None and not row_security and _is_sqlite(address):
        from homing.database.sqlite import SqliteDatabase
        from homing.stores.sqlite.store import SqliteStore

        opened = database()
        if isinstance(opened, SqliteDatabase):
            return SqliteStore(opened, dimensions=dimensions)
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


def _is_sqlite(address: str) -> bool:
    return address.startswith("sqlite://") or ("://" not in address and address.endswith(".db"))


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

    place, _, query = rest.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    options: dict[str, Any] = {name: given.pop(name) for name in ("schema", "read_url") if name in given}
    if "statement_timeout" in given:
        options["statement_timeout"] = _seconds(given.pop("statement_timeout"))
    # What is left is for the driver, such as sslmode.
    url = f"postgresql://{place}" + (f"?{urlencode(given)}" if given else "")
    return PostgresStore(url, dimensions=dimensions, row_security=row_security, **options)


def _seconds(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise InvalidArgument(f"statement_timeout is a number of seconds; got {written!r}") from None


def _open_lance(scheme: str) -> Callable[[str, int | None], Store]:
    def open_at(rest: str, dimensions: int | None) -> Store:
        from homing.stores.lance import Address, LanceStore

        return LanceStore(Address.of_url(f"{scheme}://{rest}"), dimensions=dimensions)

    return open_at


POSTGRES = ("postgresql", "postgres")

_SCHEMES: dict[str, Callable[[str, int | None], Store]] = {
    "sqlite": _open_sqlite,
    **dict.fromkeys(POSTGRES, _open_postgres),
    "lance": _open_lance("lance"),
    "s3": _open_lance("s3"),
}


def _known() -> str:
    return ", ".join(f"{scheme}://" for scheme in sorted(_SCHEMES))
