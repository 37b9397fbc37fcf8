"""What every database promises, as tests that any engine runs.

class TestMyDatabase(DatabaseContract):
    @pytest.fixture
    def open_database(self, tmp_path):
        return partial(MyDatabase, tmp_path / "data")     # called again, it opens the same data; it can be pickled
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from homing.database import Database, Row, Transaction
from homing.errors import StoreError, StoreTooNew
from homing.testing.processes import Processes

OpenDatabase = Callable[[], Database]

TABLES = """
    CREATE TABLE notes(id IDENTITY, name TEXT NOT NULL UNIQUE, size INT64, weight FLOAT64, content BYTES);
    CREATE TABLE counters(name TEXT PRIMARY KEY, value INT64 NOT NULL)
"""

_CHILD = """
import pickle, sys
open_database = pickle.loads(bytes.fromhex(sys.argv[1]))
database = open_database()
from homing.testing.database_contract import {work}
{work}(database)
"""


def increment(database: Database, times: int = 40) -> None:
    """Add to the counter `shared`, each time by what was read before."""

    def add(transaction: Transaction) -> None:
        [(found,)] = transaction.rows("SELECT value FROM counters WHERE name = $1", "shared")
        transaction.rows("UPDATE counters SET value = $1 WHERE name = $2", found + 1, "shared")

    for _ in range(times):
        database.write(add, "counter")


def stop_in_the_middle(database: Database) -> None:
    """Write one row, say so, write half of a second transaction, say so, and wait."""
    database.write(lambda transaction: add_note(transaction, "whole"), "notes")

    def half(transaction: Transaction) -> None:
        add_note(transaction, "half")
        print("half", flush=True)
        sys.stdin.read()

    database.write(half, "notes")


def add_note(transaction: Transaction, name: str) -> int:
    """A row in `notes`; returns its number."""
    [(number,)] = transaction.rows("INSERT INTO notes(name) VALUES ($1) RETURNING id", name)
    return int(number)


def names(transaction: Transaction) -> list[str]:
    """The names in `notes`, in order."""
    return [name for (name,) in transaction.rows("SELECT name FROM notes ORDER BY name")]


class DatabaseContract(Processes):
    """Subclass it and give it the fixture `open_database`."""

    def child(self, open_database: OpenDatabase, work: str) -> Any:
        """Another process that opens the database and runs one of the functions above."""
        return self.start_python(_CHILD.format(work=work), pickle.dumps(open_database).hex())

    @pytest.fixture
    def open_database(self) -> OpenDatabase:
        """A function that opens the database; called again it opens the same data, and it can be pickled."""
        raise NotImplementedError("override the fixture `open_database`")

    @pytest.fixture
    def opened(self, open_database: OpenDatabase) -> Iterator[Database]:
        """A database with two empty tables."""
        opened = open_database()
        opened.migrate("contract", [TABLES])
        yield opened
        opened.close()

    @pytest.fixture
    def other(self, opened: Database, open_database: OpenDatabase) -> Iterator[Database]:
        """A second opening of the same data."""
        opened = open_database()
        yield opened
        opened.close()

    def test_it_is_a_database(self, opened: Database) -> None:
        assert isinstance(opened, Database)
        assert not opened.read_only

    def test_what_was_written_is_seen_by_everybody(self, opened: Database, other: Database) -> None:
        assert opened.write(lambda transaction: add_note(transaction, "灯")) >= 1
        assert other.read(names) == ["灯"]
        assert opened.read(names) == ["灯"]

    def test_work_that_raises_changes_nothing(self, opened: Database, other: Database) -> None:
        def work(transaction: Transaction) -> None:
            add_note(transaction, "a")
            assert names(transaction) == ["a"]
            raise RuntimeError("after the insert")

        with pytest.raises(RuntimeError, match="after the insert"):
            opened.write(work)
        assert other.read(names) == []
        opened.write(lambda transaction: add_note(transaction, "b"))
        assert opened.read(names) == ["b"]

    def test_a_statement_that_fails_takes_the_whole_transaction_back(self, opened: Database) -> None:
        def work(transaction: Transaction) -> None:
            add_note(transaction, "a")
            transaction.rows("SELECT nothing FROM nowhere")

        with pytest.raises(StoreError):
            opened.write(work)
        assert opened.read(names) == []

    def test_reading_sees_one_state(self, opened: Database, other: Database) -> None:
        def work(transaction: Transaction) -> tuple[list[str], list[str]]:
            before = names(transaction)
            other.write(lambda elsewhere: add_note(elsewhere, "meanwhile"))
            return before, names(transaction)

        assert opened.read(work) == ([], [])
        assert opened.read(names) == ["meanwhile"]

    def test_values_come_back_as_they_were_given(self, opened: Database) -> None:
        given: list[Row] = [
            ("数 ' \" \\ $1 %s", 2**63 - 1, 1_790_000_000.123456, b"\0\xff"),
            ("least", -(2**63), 5e-324, b""),
            ("nothing", None, None, None),
        ]

        def write(transaction: Transaction) -> None:
            transaction.each("INSERT INTO notes(name, size, weight, content) VALUES ($1, $2, $3, $4)", given)

        opened.write(write)
        assert opened.read(lambda t: t.rows("SELECT name, size, weight, content FROM notes ORDER BY id")) == given

    def test_truth_is_a_number(self, opened: Database) -> None:
        opened.write(lambda t: t.rows("INSERT INTO counters(name, value) VALUES ($1, $2)", "true", True))
        assert opened.read(lambda t: t.rows("SELECT name FROM counters WHERE value = $1", True)) == [("true",)]

    def test_a_list_of_values(self, opened: Database) -> None:
        def write(transaction: Transaction) -> None:
            transaction.each("INSERT INTO notes(name, size) VALUES ($1, $2)", [("a", 1), ("灯", 2), ("c", 70_000)])

        def found(column: str, values: list[str] | list[int]) -> list[Row]:
            statement = f"SELECT name FROM notes WHERE {column} = ANY($1) ORDER BY name"
            return opened.read(lambda transaction: transaction.rows(statement, values))

        opened.write(write)
        assert found("name", ["灯", "c", "nobody"]) == [("c",), ("灯",)]
        assert found("size", [1, 70_000]) == [("a",), ("c",)]
        assert found("name", []) == []
        assert found("size", []) == []

    def test_statements_answer_with_their_rows(self, opened: Database) -> None:
        def work(transaction: Transaction) -> list[list[Row]]:
            statement = "INSERT INTO counters(name, value) VALUES ($1, $2) ON CONFLICT (name) DO "
            update = "UPDATE SET value = counters.value + excluded.value RETURNING value"
            return [
                transaction.rows(statement + update, "a", 5),
                transaction.rows(statement + update, "a", 6),
                transaction.rows(statement + "NOTHING RETURNING value", "a", 7),
                transaction.rows("UPDATE counters SET value = 0"),
                transaction.rows("DELETE FROM counters WHERE name = $1 RETURNING name, value", "a"),
            ]

        assert opened.write(work) == [[(5,)], [(11,)], [], [], [("a", 0)]]

    def test_texts_are_ordered_by_their_characters(self, opened: Database) -> None:
        given = ["b", "B", "a", "a b", "é", "灯", "燈", "10", "9", "😀", "_"]
        opened.write(lambda t: t.each("INSERT INTO notes(name) VALUES ($1)", [(one,) for one in given]))
        assert opened.read(names) == sorted(given)

    def test_a_number_is_never_given_twice(self, opened: Database) -> None:
        first, second = (opened.write(lambda t, name=name: add_note(t, name)) for name in ("a", "b"))  # type: ignore[misc]
        opened.write(lambda transaction: transaction.rows("DELETE FROM notes"))
        third = opened.write(lambda transaction: add_note(transaction, "c"))
        assert first < second < third

    def test_time_is_a_number_of_seconds(self, opened: Database) -> None:
        found = opened.write(lambda transaction: transaction.now())
        assert isinstance(found, float)
        assert found > 1_600_000_000

    def test_steps_are_applied_once_and_in_order(self, open_database: OpenDatabase) -> None:
        def third(transaction: Transaction) -> None:
            transaction.rows("INSERT INTO steps(name) VALUES ($1)", "third")

        steps = ["CREATE TABLE steps(id IDENTITY, name TEXT NOT NULL)", "INSERT INTO steps(name) VALUES ('second')"]
        database = open_database()
        database.migrate("one", steps)
        database.migrate("one", steps)
        database.migrate("another", ["CREATE TABLE others(name TEXT); INSERT INTO others VALUES ('a')"])
        database.close()
        database = open_database()
        database.migrate("one", [*steps, third])
        database.migrate("one", [*steps, third])
        found = database.read(lambda transaction: transaction.rows("SELECT name FROM steps ORDER BY id"))
        assert found == [("second",), ("third",)]
        database.close()

    def test_steps_of_a_newer_version_are_refused(self, opened: Database) -> None:
        opened.migrate("contract", [TABLES, "CREATE TABLE newer(name TEXT)"])
        with pytest.raises(StoreTooNew, match="upgrade"):
            opened.migrate("contract", [TABLES])

    def test_a_step_that_fails_leaves_nothing(self, opened: Database) -> None:
        def fails(transaction: Transaction) -> None:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError):
            opened.migrate("broken", ["CREATE TABLE half(name TEXT)", fails])
        opened.migrate("broken", ["CREATE TABLE half(name TEXT)"])
        assert opened.read(lambda transaction: transaction.rows("SELECT name FROM half")) == []

    def test_all_who_migrate_at_once_get_their_tables(self, open_database: OpenDatabase) -> None:
        def work(number: int) -> int:
            opened = open_database()
            try:
                opened.migrate("contract", [TABLES])
                return opened.write(lambda transaction: add_note(transaction, str(number)))
            finally:
                opened.close()

        with ThreadPoolExecutor(4) as threads:
            assert len(set(threads.map(work, range(4)))) == 4

    def test_threads_that_write_to_one_scope_lose_no_update(self, opened: Database, other: Database) -> None:
        opened.write(lambda t: t.rows("INSERT INTO counters(name, value) VALUES ('shared', 0)"))
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(increment, [opened, other, opened, other]))
        assert opened.read(lambda t: t.rows("SELECT value FROM counters")) == [(160,)]

    def test_processes_that_write_to_one_scope_lose_no_update(
        self, opened: Database, open_database: OpenDatabase
    ) -> None:
        opened.write(lambda t: t.rows("INSERT INTO counters(name, value) VALUES ('shared', 0)"))
        children = [self.child(open_database, "increment") for _ in range(2)]
        increment(opened)
        for one in children:
            one.communicate()
            assert one.returncode == 0
        assert opened.read(lambda t: t.rows("SELECT value FROM counters")) == [(120,)]

    def test_a_killed_writer_leaves_nothing_half_written(self, opened: Database, open_database: OpenDatabase) -> None:
        with self.child(open_database, "stop_in_the_middle") as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "half\n"
            assert opened.read(names) == ["whole"]
            writer.kill()
        opened.write(lambda transaction: add_note(transaction, "next"), "notes")
        assert opened.read(names) == ["next", "whole"]

    def test_the_version_moves_with_every_commit(self, opened: Database, other: Database) -> None:
        seen = opened.version()
        for number, writer in enumerate((opened, other, opened)):
            writer.write(lambda transaction, number=number: add_note(transaction, str(number)))  # type: ignore[misc]
            now = opened.version()
            assert now != seen
            seen = now

    def test_a_closed_database_refuses_every_call(self, opened: Database) -> None:
        opened.close()
        opened.close()
        for call in (
            lambda: opened.read(names),
            lambda: opened.write(names),
            lambda: opened.migrate("contract", [TABLES]),
            lambda: opened.version(),
        ):
            with pytest.raises(StoreError):
                call()
