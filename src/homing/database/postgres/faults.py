"""PostgreSQL's errors in the words of a store: what failed, where, and what to do next."""

from __future__ import annotations

from homing.database.postgres.address import Address
from homing.database.postgres.driver import psycopg
from homing.errors import HomingError, StoreBusy, StoreCorrupt, StoreError, StoreReadOnly, StoreUnavailable

errors = psycopg.errors

AGAIN = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
"""What happens to writers that get in each other's way; the same work succeeds when it is done again."""

_LOST = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
)


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
