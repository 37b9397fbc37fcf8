"""A file grows by numbered steps."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from homing.database import Transaction
from homing.database.sqlite import SqliteDatabase
from homing.errors import StoreCorrupt, StoreError, StoreTooNew
from homing.stores.sqlite import SqliteStore

FIRST = "CREATE TABLE notes(id IDENTITY, body TEXT)"
SECOND = "ALTER TABLE notes ADD COLUMN title TEXT"


def columns(database: SqliteDatabase) -> list[str]:
    with database.reading() as connection:
        return [str(name) for _, name, *_ in connection.execute("PRAGMA table_info(notes)").fetchall()]


def test_steps_are_applied_once_and_in_order(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "x.db")
    database.migrate("notes", [FIRST])
    database.migrate("notes", [FIRST])
    assert columns(database) == ["id", "body"]
    database.migrate("notes", [FIRST, SECOND])
    assert columns(database) == ["id", "body", "title"]
    with database.reading() as connection:
        applied = connection.execute("SELECT component, number FROM migrations").fetchall()
    assert applied == [("notes", 1), ("notes", 2)]
    database.close()


def test_a_step_may_be_a_function(tmp_path: Path) -> None:
    def fill(transaction: Transaction) -> None:
        transaction.rows("INSERT INTO notes(body) VALUES ($1)", "hello")

    database = SqliteDatabase(tmp_path / "x.db")
    database.migrate("notes", [FIRST, fill])
    with database.reading() as connection:
        assert connection.execute("SELECT body FROM notes").get == "hello"
    database.close()


def test_components_share_a_file_and_count_for_themselves(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    store.database.migrate("notes", [FIRST, SECOND])
    store.close()
    again = SqliteStore(tmp_path / "x.db")
    assert columns(again.database) == ["id", "body", "title"]
    assert again.check() == []
    again.close()


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "x.db")
    with pytest.raises(StoreError):
        database.migrate("notes", [FIRST, "CREATE TABLE notes(again)"])
    assert columns(database) == []
    database.migrate("notes", [FIRST])
    assert columns(database) == ["id", "body"]
    database.close()


def test_a_component_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "x.db")
    database.migrate("notes", [FIRST, SECOND])
    with pytest.raises(StoreTooNew, match="upgrade Homing"):
        database.migrate("notes", [FIRST])
    database.close()


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    with store.database.writing() as connection:
        connection.execute("INSERT INTO migrations(component, number) VALUES ('store', 99)")
    store.close()
    with pytest.raises(StoreTooNew) as refused:
        SqliteStore(tmp_path / "x.db")
    assert refused.value.details["found"] == 99


def test_a_file_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "x.db").close()
    plain = apsw.Connection(str(tmp_path / "x.db"))
    plain.pragma("user_version", 1000)
    plain.close()
    with pytest.raises(StoreTooNew, match="1000"):
        SqliteStore(tmp_path / "x.db")


@pytest.mark.parametrize("application", [0, 1234])
def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path, application: int) -> None:
    path = tmp_path / "theirs.db"
    plain = apsw.Connection(str(path))
    plain.pragma("application_id", application)
    plain.execute("CREATE TABLE theirs(x)")
    plain.close()
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="not a Homing store"):
        SqliteStore(path)
    assert path.read_bytes() == before
