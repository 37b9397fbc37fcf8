"""psycopg, the one library this package stands on: connections, addresses, errors, and pgvector's type on the wire.

Where it is missing, the extra that brings it is named.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from homing.errors import (
    HomingError,
    InvalidArgument,
    MissingExtra,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from homing.vectors import Matrix, Vector

try:
    import psycopg
    from psycopg import sql
except ModuleNotFoundError as error:
    raise MissingExtra(
        "a PostgreSQL store needs psycopg; run: pip install 'homing[postgres]'", details={"extra": "postgres"}
    ) from error

__all__ = ["AGAIN", "Address", "Connection", "connect", "fault", "is_lost", "packed", "psycopg", "register", "sql"]

errors = psycopg.errors
Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_TIMEOUT = 10
"""Seconds after which a host that does not answer is given up; libpq counts whole ones."""
SCHEMES = ("postgresql://", "postgres://")
AGAIN = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
"""What happens to writers that get in each other's way; the same work succeeds when it is done again."""

_LOST = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
)
# A vector of pgvector: its width and a reserved word as 16-bit, then 32-bit floats, all big-endian.
_HEAD = struct.Struct(">HH")


def connect(url: str, options: str = "") -> Connection:
    """A connection on which every statement is its own transaction, unless one is begun.

    No statement is prepared on the server: behind a pooler (pgbouncer in transaction mode) the next one may reach
    another session, where the same name is somebody else's statement.
    """
    said = psycopg.conninfo.conninfo_to_dict(url).get("options") or ""
    return psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=CONNECT_TIMEOUT,
        application_name="homing",
        prepare_threshold=None,
        options=f"{said} {options}".strip() or None,
    )


class Address:
    """A `postgresql://` address. Its text is what may be shown; `dsn` is what the driver gets, `url` what we got."""

    def __init__(self, url: str) -> None:
        if not isinstance(url, str) or not url.startswith(SCHEMES):
            raise InvalidArgument("the address of a PostgreSQL store begins with postgresql://")
        try:
            self._parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            # The driver quotes the address, password and all; nothing of what it says may be passed on.
            raise InvalidArgument(
                "the address of a PostgreSQL store is postgresql://user:password@host:port/database; "
                "this one cannot be read: write special characters of the password as %XX"
            ) from None
        self.url = url
        self.dsn = psycopg.conninfo.make_conninfo("", **self._parts)

    def __str__(self) -> str:
        parts = {key: str(self._parts.get(key) or "") for key in ("user", "host", "port", "dbname")}
        place = parts["host"] + (f":{parts['port']}" if parts["port"] else "")
        return f"postgresql://{parts['user'] + '@' if parts['user'] else ''}{place}/{parts['dbname']}"

    __repr__ = __str__

    def hide(self, message: str) -> str:
        """A message of the driver without the password, should it ever contain one."""
        password = str(self._parts.get("password") or "")
        return message.replace(password, "***") if password else message


class _Dumper(psycopg.adapt.Dumper):
    format = psycopg.pq.Format.BINARY

    def dump(self, row: Vector) -> bytes:
        return _HEAD.pack(row.size, 0) + row.astype(">f4").tobytes()


class _Loader(psycopg.adapt.Loader):
    format = psycopg.pq.Format.BINARY

    def load(self, data: psycopg.abc.Buffer) -> Vector:
        return np.frombuffer(bytes(data), ">f4", offset=_HEAD.size).astype(np.float32)


def register(connection: Connection, oid: int) -> None:
    """Let this connection send and receive vectors, whose type has this number in its database."""
    dumper = type("VectorDumper", (_Dumper,), {"oid": oid})
    connection.adapters.register_dumper(np.ndarray, dumper)
    connection.adapters.register_loader(oid, _Loader)


def packed(rows: Matrix) -> list[bytes]:
    """Many vectors at once, each as it goes into a binary COPY."""
    head = _HEAD.pack(rows.shape[1], 0)
    wide = rows.astype(">f4")
    return [head + row.tobytes() for row in wide]


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke or could not be made, so that another one may do."""
    if isinstance(error, _LOST):
        return True
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return bool(state.startswith("08"))
    return isinstance(error, psycopg.OperationalError)


def fault(address: Address, error: psycopg.Error) -> HomingError:
    """The error of a store for an error of the driver."""
    message = address.hide(str(error).strip())
    details = {"server": str(address), "sqlstate": error.sqlstate, "postgres": message}
    first = message.splitlines()[0] if message else type(error).__name__
    match error:
        case errors.QueryCanceled():
            return StoreBusy(
                f"{address} took too long ({first}); try again, or raise statement_timeout", details=details
            )
        case errors.LockNotAvailable() | errors.SerializationFailure() | errors.DeadlockDetected():
            return StoreBusy(f"{address}: other writers are in the way ({first}); try again", details=details)
        case errors.UniqueViolation():
            return StoreBusy(f"{address}: the same rows are being written elsewhere; try again", details=details)
        case errors.TooManyConnections():
            return StoreBusy(f"{address} has no connection left; raise its max_connections", details=details)
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return StoreError(f"{address} refused the login; check user and password", details=details)
        case errors.InvalidCatalogName():
            return StoreError(f"{address}: there is no such database; create it with createdb", details=details)
        case errors.ReadOnlySqlTransaction():
            return StoreReadOnly(f"{address} is a replica or read-only; give the primary's address", details=details)
        case errors.InsufficientPrivilege():
            return StoreError(f"{address}: {first}; grant it to the role, or use another role", details=details)
        case errors.DiskFull():
            return StoreError(f"{address} has no room left to write; free some space", details=details)
        case errors.UndefinedColumn() if "embedding" in message:
            return StoreCorrupt(f"{address}: {first}, since pgvector was dropped; run homing repair", details=details)
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.DataCorrupted() | errors.IndexCorrupted():
            return StoreCorrupt(f"{address}: {first}; restore a backup, or use another schema", details=details)
    if is_lost(error):
        if "authentication failed" in message or "no password supplied" in message:
            return StoreError(f"{address} refused the login; check user and password", details=details)
        if "does not exist" in message:
            return StoreError(f"{address}: {first}; create it, or correct the address", details=details)
        if "too many clients" in message or "remaining connection slots" in message:
            return StoreBusy(f"{address} has no connection left; raise its max_connections", details=details)
        return StoreUnavailable(f"{address} cannot be reached ({first}); try again when it is up", details=details)
    return StoreError(f"{address}: {first}", details=details)
