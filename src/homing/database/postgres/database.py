"""One schema of a PostgreSQL server, shared by any number of threads, processes and machines."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from homing.database.database import Row, Step, T, Work
from homing.database.postgres.driver import Address, Connection, connect, fault, psycopg
from homing.database.postgres.listening import NOTIFY, Listener
from homing.database.postgres.pool import STATEMENT_TIMEOUT, configure, milliseconds, settings
from homing.database.postgres.schema import applied, checked_schema, lock_number, migrate, prepare
from homing.database.postgres.sessions import Sessions
from homing.errors import InvalidArgument, StoreClosed


class PostgresTransaction:
    """A `Transaction` on one connection."""

    __slots__ = ("connection",)
    skip_locked = "FOR UPDATE SKIP LOCKED"

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, *values: Any) -> list[Row]:
        cursor = psycopg.RawCursor(self.connection)
        cursor.execute(sql, _given(values))
        return cursor.fetchall() if cursor.description else []

    def each(self, sql: str, many: Iterable[Sequence[Any]]) -> None:
        psycopg.RawCursor(self.connection).executemany(sql, map(_given, many))

    def notify(self) -> None:
        self.rows(NOTIFY)

    def now(self) -> float:
        """The clock of the server, while the transaction goes on."""
        [(seconds,)] = self.rows("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(seconds)


class PostgresDatabase:
    """A `Database` in one schema of a server. A store in the same schema works on `sessions`.

    With `read_url`, a replica answers the reads, except while it has not seen yet what was written through this object.
    The server may be restarted at any time: calls meanwhile raise StoreUnavailable, nothing that was acknowledged is
    lost, and afterwards the same object works on.

    `for_user` gives a view whose transactions tell the server who asks.
    """

    def __init__(
        self,
        url: str,
        *,
        read_url: str | None = None,
        schema: str = "homing",
        statement_timeout: float | None = STATEMENT_TIMEOUT,
    ) -> None:
        self.address = Address(url)
        self.schema = checked_schema(schema)
        self.user_id = ""
        self.read_only, self.is_remote = False, True
        self._replica = None if read_url is None else Address(read_url)
        self._timeout = milliseconds(statement_timeout)
        self._closed = False
        self._owns = True
        self._versions = itertools.count(1)
        self.extension = self._open()
        """The schema that the types of pgvector are in."""
        told = settings(self.schema, self.extension, self._timeout)
        self.sessions = Sessions(self.address, self._replica, configure, told)
        self._listener = Listener(self.address, self.schema)

    def __repr__(self) -> str:
        whose = f", user {self.user_id!r}" if self.user_id else ""
        return f"<PostgresDatabase {self.address}, schema {self.schema!r}{whose}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens its own connections to the same place; what it is sent holds the password."""
        replica = None if self._replica is None else self._replica.url
        options = {"read_url": replica, "schema": self.schema, "statement_timeout": self._timeout / 1000 or None}
        return _opened, (self.address.url, self.user_id, options)

    def for_user(self, user: str) -> PostgresDatabase:
        """A view whose transactions are those of one user. Closing it leaves this one open."""
        if self.user_id:
            raise InvalidArgument(f"this is the database of user {self.user_id!r}; ask the one it came from")
        if not user:
            raise InvalidArgument("a user has a name; got an empty text")
        view = object.__new__(PostgresDatabase)
        view.__dict__ |= self.__dict__ | {"user_id": user, "_owns": False}
        return view

    def migrate(self, component: str, steps: Sequence[Step]) -> None:
        self.check_open()
        self.sessions.write(lambda c: migrate(PostgresTransaction(c), self.schema, component, steps))

    def applied(self, component: str) -> int:
        return self.read(lambda transaction: applied(transaction.connection, self.schema, component))

    def read(self, work: Work[T], *, fresh: bool = False) -> T:
        self.check_open()
        return self.sessions.read(lambda c: work(PostgresTransaction(c)), self.user_id, snapshot=True, fresh=fresh)

    def write(self, work: Work[T], scope: str = "", *, awaited: bool = True) -> T:
        self.check_open()
        lock = lock_number(self.schema, "scope", self.user_id, scope) if scope else None
        return self.sessions.write(lambda c: work(PostgresTransaction(c)), self.user_id, lock=lock, awaited=awaited)

    def version(self) -> int:
        """Another number each time: the server does not count its commits for us."""
        self.check_open()
        return next(self._versions)

    def listen(self, heard: Callable[[], None]) -> float:
        self.check_open()
        return self._listener.add(heard)

    def check_open(self) -> None:
        """Refuse to go on where this, or what it came from, was closed."""
        if self._closed or self.sessions.closed:
            raise StoreClosed(f"{self.address}: this database is closed; open it again")

    def close(self) -> None:
        """Let go of the server. Closing twice is fine, and closing a user's view closes nothing else."""
        if self._owns and not self._closed:
            self._listener.close()
            self.sessions.close()
        self._closed = True

    def _open(self) -> str:
        try:
            with connect(self.address.dsn) as connection:
                prepare(connection, self.schema)
                row = connection.execute(
                    "SELECT current_setting('transaction_read_only'), n.nspname FROM pg_extension e "
                    "JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
                ).fetchone()
        except psycopg.Error as error:
            raise fault(self.address, error) from error
        assert row is not None
        self.read_only = row[0] == "on"
        return str(row[1])


def _given(values: Sequence[Any]) -> list[Any]:
    """Values as PostgreSQL takes them: there is no type of ours for truth, which is a number."""
    return [int(one) if isinstance(one, bool) else one for one in values]


def _opened(url: str, user: str, options: dict[str, Any]) -> PostgresDatabase:
    database = PostgresDatabase(url, **options)
    # A view that arrives without what it came from closes what it uses.
    database.user_id = user
    return database
