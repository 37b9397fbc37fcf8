"""The table behind a `PGVectorStore`: what its columns are called, and how statements reach it.

langchain-postgres talks to the server on an event loop. A statement is sent there from whatever thread asks, and is
waited for until the deadline and no longer.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from homing.errors import HomingError, InvalidArgument, StoreBusy, StoreError, StoreUnavailable, Timeout

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")
Row = Mapping[str, Any]
Work = Callable[["AsyncConnection"], Awaitable[T]]

calling_loop: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "homing_calling_loop", default=None
)
"""The loop of an asynchronous caller: where statements run when the store's engine has no loop of its own."""


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
        try:
            return await self._attempt(work, one_statement)
        except _Lost:
            pass
        try:
            return await self._attempt(work, one_statement)
        except _Lost as lost:
            raise lost.error from lost.__cause__

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
            raise _Lost(self._unavailable(error)) from error
        except SQLAlchemyError as error:
            raise StoreError(f"table {self.label}: {_first_line(error)}") from error

    def _translated(self, error: Any) -> Exception:
        state = str(getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None) or "")
        told = _first_line(error.orig)
        details = {"table": self.label, "sqlstate": state}
        if error.connection_invalidated or state[:2] == "08" or state in ("57P01", "57P02", "57P03"):
            return _Lost(self._unavailable(error.orig))
        if state == "57014":
            return StoreBusy(f"table {self.label} took too long ({told})", details=details)
        return StoreError(f"table {self.label}: {told}", details=details)

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(
            f"the server of table {self.label} cannot be reached ({_first_line(error)}); try again when it is up",
            details={"table": self.label},
        )


class _Lost(Exception):
    """The connection broke; another one may do. Carries what to say when that one breaks too."""

    def __init__(self, error: StoreUnavailable) -> None:
        super().__init__(str(error))
        self.error = error


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


def _first_line(error: BaseException | None) -> str:
    told = str(error).strip().splitlines()
    return told[0] if told else type(error).__name__
