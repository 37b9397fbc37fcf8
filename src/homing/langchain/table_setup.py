"""What a table of langchain-postgres lacks for many users: an index on the user, and a fence kept by the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homing.errors import InvalidArgument
from homing.langchain.table import Table, literal, table_of
from homing.langchain.table_source import forget

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

POLICY = "homing_own_rows"
DEADLINE = 3_600.0
"""Seconds; an index of a large table takes its time."""


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

    table.run(work, deadline=DEADLINE)
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
