"""What is particular to rows in PostgreSQL: schemas that are refused, users, scopes, and lines that break."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql

from homing.database import Transaction
from homing.database.postgres.database import PostgresDatabase
from homing.errors import InvalidArgument, StoreCorrupt, StoreError, StoreTooNew, StoreTooOld
from tests.conftest import Database
from tests.database.wire import Cut, Wire, committed, not_committed

Opened = Callable[..., PostgresDatabase]
COUNTER = "CREATE TABLE counters(value INT64 NOT NULL); INSERT INTO counters VALUES (0)"


@pytest.fixture
def opened(database: Database, schema: str) -> Iterator[Opened]:
    """Opens databases on the schema of the test, and closes them."""
    databases: list[PostgresDatabase] = []

    def open_one(url: str = database.url) -> PostgresDatabase:
        databases.append(PostgresDatabase(url, schema=schema))
        return databases[-1]

    yield open_one
    for one in databases:
        one.close()


@pytest.fixture
def theirs(database: Database, schema: str) -> Iterator[psycopg.Connection]:
    """The superuser, in a schema that was there before us."""
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("GRANT ALL ON SCHEMA {} TO PUBLIC").format(sql.Identifier(schema)))
        connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
        yield connection


def user_of(transaction: Transaction) -> str:
    [(user,)] = transaction.rows("SELECT coalesce(current_setting('homing.user_id', true), '')")
    return str(user)


def count_up(transaction: Transaction) -> int:
    [(value,)] = transaction.rows("UPDATE counters SET value = value + 1 RETURNING value")
    return int(value)


def test_a_schema_of_the_first_edition_is_refused_and_left_alone(opened: Opened, theirs: psycopg.Connection) -> None:
    theirs.execute("CREATE TABLE migrations(number integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())")
    theirs.execute("INSERT INTO migrations(number) VALUES (1), (2)")
    with pytest.raises(StoreTooOld, match="first edition"):
        opened()
    assert theirs.execute("SELECT count(*) FROM migrations").fetchone() == (2,)


def test_a_schema_of_an_earlier_build_is_refused_and_left_alone(opened: Opened, theirs: psycopg.Connection) -> None:
    opened().migrate("counters", [COUNTER])
    # Earlier builds wrote no format down, and their tables were others under the same numbers.
    theirs.execute("DELETE FROM migrations WHERE component = 'format'")
    before = theirs.execute("SELECT component, number FROM migrations").fetchall()
    with pytest.raises(StoreTooOld, match=r"earlier edition.*another schema and add your texts again"):
        opened()
    assert theirs.execute("SELECT component, number FROM migrations").fetchall() == before == [("counters", 1)]


@pytest.mark.parametrize(("change", "error"), [(-1, StoreTooOld), (1, StoreTooNew)])
def test_a_schema_of_another_format_is_refused(
    opened: Opened, theirs: psycopg.Connection, change: int, error: type[StoreError]
) -> None:
    opened().migrate("counters", [COUNTER])
    opened().migrate("counters", [COUNTER])
    theirs.execute("UPDATE migrations SET number = number + %s WHERE component = 'format'", (change,))
    with pytest.raises(error, match=r"earlier edition|upgrade Homing"):
        opened()


def test_migrations_of_somebody_else_are_left_alone(opened: Opened, theirs: psycopg.Connection) -> None:
    theirs.execute("CREATE TABLE migrations(id text, name text)")
    with pytest.raises(StoreCorrupt, match="schema of its own"):
        opened()


def test_the_transactions_of_a_view_tell_the_server_who_asks(opened: Opened) -> None:
    everybody = opened()
    li, han = everybody.for_user("李雷"), everybody.for_user("'; DROP TABLE x; --\\")
    assert [one.write(user_of) for one in (everybody, li, han)] == ["", li.user_id, han.user_id]
    assert [one.read(user_of) for one in (li, everybody, han)] == [li.user_id, "", han.user_id]


def test_a_view_does_not_lead_to_another_user(opened: Opened) -> None:
    everybody = opened()
    with pytest.raises(InvalidArgument, match="李雷"):
        everybody.for_user("李雷").for_user("韩梅梅")
    with pytest.raises(InvalidArgument):
        everybody.for_user("")


def test_closing_a_view_leaves_the_others_open(opened: Opened) -> None:
    everybody = opened()
    li, han = everybody.for_user("李雷"), everybody.for_user("韩梅梅")
    li.close()
    with pytest.raises(StoreError, match="closed"):
        li.read(user_of)
    assert han.read(user_of) == "韩梅梅"
    everybody.close()
    with pytest.raises(StoreError, match="closed"):
        han.read(user_of)


def test_writers_to_other_scopes_do_not_wait(opened: Opened) -> None:
    everybody = opened()
    other = everybody.for_user("李雷")

    def work(transaction: Transaction) -> list[str]:
        with ThreadPoolExecutor(3) as threads:
            free = [
                threads.submit(everybody.write, user_of, "another"),
                threads.submit(everybody.write, user_of),
                threads.submit(other.write, user_of, "scope"),
            ]
            return [one.result() for one in free]

    assert everybody.write(work, "scope") == ["", "", "李雷"]


@pytest.mark.parametrize("cut", [committed, not_committed])
def test_a_write_whose_commit_got_no_answer_happens_once(database: Database, opened: Opened, cut: Cut) -> None:
    wire = Wire(database.url)
    try:
        rows = opened(wire.url)
        rows.migrate("counter", [COUNTER])
        wire.cut = cut
        assert rows.write(count_up, "counter") == 1
        assert wire.cut is None, "the line was not cut"
        assert rows.write(count_up, "counter") == 2
    finally:
        wire.close()


def test_neither_the_database_nor_its_errors_show_the_password(opened: Opened) -> None:
    rows = opened()
    password = rows.address.url.split("@")[0].rsplit(":", 1)[-1]
    with pytest.raises(StoreError) as refused:
        rows.read(lambda transaction: transaction.rows("SELECT nothing FROM nowhere"))
    assert password not in repr(rows) + str(refused.value) + repr(refused.value.details)
