"""The table behind a `PGVectorStore`: its columns, how statements reach it, and what it lacks for many users.

langchain-postgres talks to the server on an event loop. A statement is sent there from whatever thread asks, and is
waited for until the deadline and no longer.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from homing.errors import HomingError, InvalidArgument, StoreBusy, StoreError, StoreUnavailable, Timeout

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")
Row = Mapping[str, Any]
Work = Callable[["AsyncConnection"], Awaitable[T]]

POLICY = "homing_own_rows"
PREPARING = 3_600.0
"""Seconds for `prepare_table`: an index of a large table takes its time."""
_TYPES = (
    "SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type FROM pg_attribute a "
    "WHERE a.attrelid = to_regclass(:table) AND a.attnum > 0 AND NOT a.attisdropped "
    "UNION ALL SELECT 'extension vector', extversion FROM pg_extension WHERE extname = 'vector' "
    "UNION ALL SELECT 'row security', CAST(relrowsecurity AS text) FROM pg_class WHERE oid = to_regclass(:table)"
)

calling_loop: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "homing_calling_loop", default=None
)
"""The loop of an asynchronous caller: where statements run when the store's engine has no loop of its own."""

REMEMBERED = 60.0
"""Seconds after which a table is looked up again: somebody may have put a fence around it."""

_seen: WeakKeyDictionary[AsyncEngine, dict[str, tuple[float, dict[str, str]]]] = WeakKeyDictionary()
# The same for every user, so that a retriever for one request need not ask.


@dataclass(frozen=True)
class Table:
    """Names of a table and its columns, quoted for SQL, and the engine that reaches it."""

    engine: AsyncEngine
    loop: asyncio.AbstractEventLoop | None
    embeddings: Any
    label: str
    name: str
    id: str
    content: str
    embedding: str
    operator: str
    json: str | None
    columns: Mapping[str, str]
    """Metadata that has a column of its own: key, quoted column."""

    def run(self, work: Work[T], *, deadline: float, one_statement: bool = False) -> T:
        """What the work answers, on a connection of the engine; once more where that connection turned out dead.

        Work of one statement needs no transaction around it, which saves two ways to the server and back. Raises errors
        of a store: their words are the server's, without statements and parameters.
        """
        loop = self.loop or calling_loop.get()
        if loop is None:
            raise InvalidArgument(
                "this PGVectorStore has no event loop of its own, so it answers asynchronous calls only: "
                "use ainvoke, or make its engine with PGEngine.from_connection_string"
            )
        future = asyncio.run_coroutine_threadsafe(self._attempts(work, one_statement), loop)
        try:
            return future.result(deadline)
        except Late:
            future.cancel()
            raise Timeout(f"table {self.label} gave no answer within {deadline:g} s") from None

    async def _attempts(self, work: Work[T], one_statement: bool) -> T:
        # A connection that broke may have been the last of a server that is back already.
        with suppress(StoreUnavailable):
            return await self._attempt(work, one_statement)
        return await self._attempt(work, one_statement)

    async def _attempt(self, work: Work[T], one_statement: bool) -> T:
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        try:
            async with self.engine.connect() as connection:
                if one_statement:
                    await connection.execution_options(isolation_level="AUTOCOMMIT")
                return await work(connection)
        except HomingError:
            raise
        except DBAPIError as error:
            raise self._translated(error) from error
        except OSError as error:
            raise self._unavailable(error) from error
        except SQLAlchemyError as error:
            raise StoreError(f"table {self.label}: {_first_line(error)}") from error

    def _translated(self, error: Any) -> StoreError:
        state = str(getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None) or "")
        said = _first_line(error.orig)
        details = {"table": self.label, "sqlstate": state}
        if error.connection_invalidated or state[:2] == "08" or state in ("57P01", "57P02", "57P03"):
            return self._unavailable(error.orig)
        if state == "57014":
            return StoreBusy(f"table {self.label} took too long ({said})", details=details)
        return StoreError(f"table {self.label}: {said}", details=details)

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(
            f"the server of table {self.label} cannot be reached ({_first_line(error)}); try again when it is up",
            details={"table": self.label},
        )


def table_of(vector_store: Any) -> Table | None:
    """The table of a `PGVectorStore` (or of its asynchronous half); None for anything else."""
    # The public class has no way to ask for its table; the inner one has plain attributes.
    inner = getattr(vector_store, "_PGVectorStore__vs", vector_store)
    engine = getattr(vector_store, "_engine", None)
    needed = ("engine", "table_name", "schema_name", "content_column", "embedding_column", "distance_strategy")
    if not all(hasattr(inner, name) for name in needed):
        return None
    if not inner.metadata_json_column and not inner.metadata_columns:
        raise InvalidArgument(f"table {inner.table_name!r} keeps no metadata, so nothing in it says whose a row is")
    return Table(
        engine=inner.engine,
        loop=getattr(engine, "_loop", None),
        embeddings=inner.embedding_service,
        label=f"{inner.schema_name}.{inner.table_name}",
        name=f"{quoted(inner.schema_name)}.{quoted(inner.table_name)}",
        id=quoted(inner.id_column),
        content=quoted(inner.content_column),
        embedding=quoted(inner.embedding_column),
        operator=inner.distance_strategy.operator,
        json=quoted(inner.metadata_json_column) if inner.metadata_json_column else None,
        columns={column: quoted(column) for column in inner.metadata_columns},
    )


def quoted(name: str) -> str:
    """An identifier, whatever is in it; a colon would be taken for a parameter."""
    return '"' + name.replace('"', '""').replace(":", "\\:") + '"'


def literal(text: str) -> str:
    """A string constant. Where an index is on an expression, the expression must hold the same constant."""
    return "'" + text.replace("'", "''").replace(":", "\\:") + "'"


async def fetch(connection: AsyncConnection, statement: str, values: Mapping[str, Any]) -> Sequence[Row]:
    """The rows of a statement."""
    from sqlalchemy import text

    result = await connection.execute(text(statement), dict(values))
    return [dict(row) for row in result.mappings()]


def forget(table: Table) -> None:
    """Look the table up again before the next search."""
    _seen.get(table.engine, {}).pop(table.name, None)


def known_types(table: Table) -> dict[str, str]:
    """What `column_types` said a moment ago; nothing where it was not asked."""
    until, types = _seen.get(table.engine, {}).get(table.name, (0.0, {}))
    return types if time.monotonic() < until else {}


async def column_types(connection: AsyncConnection, table: Table) -> dict[str, str]:
    """The types of the columns by name, that of the JSON under no name; the version of pgvector, and row security."""
    if types := known_types(table):
        return types
    rows = await fetch(connection, _TYPES, {"table": table.name.replace("\\:", ":")})
    types = {row["name"]: row["type"] for row in rows}
    if "row security" not in types:
        raise StoreError(f"there is no table {table.label}; make it with init_vectorstore_table")
    if table.json is not None:
        types[""] = types.get(table.json[1:-1].replace('""', '"').replace("\\:", ":"), "json")
    _seen.setdefault(table.engine, {})[table.name] = (time.monotonic() + REMEMBERED, types)
    return types


def prepare_table(vector_store: Any, *, user_key: str = "userId", row_security: bool = False) -> None:
    """Make the table of a `PGVectorStore` fit for many users; doing it again changes nothing.

    Adds an index on the user, without which every search reads the whole table. With `row_security` the server itself
    hides rows whose user is not the session's `homing.user_id`, from the owner of the table too: a retriever says who
    asks, and whoever writes must do so as well (`SET homing.user_id = …`). Superusers see over the fence.
    """
    table = table_of(vector_store)
    if table is None:
        raise InvalidArgument(f"prepare_table takes a PGVectorStore; got {type(vector_store).__name__}")
    owner = table.columns.get(user_key) or f"({table.json} ->> {literal(user_key)})"

    async def work(connection: AsyncConnection) -> None:
        from sqlalchemy import text

        for statement in _statements(table, owner, row_security=row_security):
            await connection.execute(text(statement))
        await connection.commit()

    table.run(work, deadline=PREPARING)
    forget(table)


def _statements(table: Table, owner: str, *, row_security: bool) -> list[str]:
    index = table.name.rpartition('"."')[2][:-1][:40] + "_by_user"
    statements = [f'CREATE INDEX IF NOT EXISTS "{index}" ON {table.name} ({owner})', f"ANALYZE {table.name}"]
    if row_security:
        own = f"CAST({owner} AS text) = current_setting('homing.user_id', true)"
        statements += [
            f"ALTER TABLE {table.name} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {table.name} FORCE ROW LEVEL SECURITY",
            f"DROP POLICY IF EXISTS {POLICY} ON {table.name}",
            f"CREATE POLICY {POLICY} ON {table.name} USING ({own}) WITH CHECK ({own})",
        ]
    return statements


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
