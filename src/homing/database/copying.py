"""Takes the rows of a table from one database to another, whichever engines they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from homing.database.database import Database, Row, Step, Transaction

PAGE = 2_000
"""Rows that are written together."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table without numbers that the database gives: its component, the steps that make it, its name and its key."""

    component: str
    steps: Sequence[Step]
    name: str
    key: str


def copy_table(
    source: Database,
    target: Database,
    table: Table,
    changed: Callable[[Row], Row] = lambda row: row,
    *,
    user: str | None = None,
) -> int:
    """Bring over every row that is not there yet, as `changed`; returns how many the source has.

    Of a table with rows of users, give the `user`: the two databases are then as that user sees them. What it had
    brought when it was interrupted is found and passed over the next time.
    """
    if not source.applied(table.component):
        return 0
    target.migrate(table.component, table.steps)
    count = 0
    while page := source.read(partial(_page, table=table, start=count, user=user)):
        target.write(partial(_write, table=table, rows=[changed(row) for row in page]))
        count += len(page)
    return count


def _page(transaction: Transaction, table: Table, start: int, user: str | None) -> list[Row]:
    own, given = ("", ()) if user is None else (" WHERE user_id = $1", (user,))
    return transaction.rows(f"SELECT * FROM {table.name}{own} ORDER BY {table.key} LIMIT {PAGE} OFFSET {start}", *given)


def _write(transaction: Transaction, table: Table, rows: Sequence[Row]) -> None:
    values = ", ".join(f"${number}" for number in range(1, len(rows[0]) + 1))
    transaction.each(f"INSERT INTO {table.name} VALUES ({values}) ON CONFLICT({table.key}) DO NOTHING", rows)
