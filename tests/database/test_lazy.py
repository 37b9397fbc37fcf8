"""One database for an app, opened when it is first needed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import homing
from homing.config import Settings
from homing.database.lazy import LazyDatabase


def test_asking_for_what_is_not_there_makes_nothing(tmp_path: Path) -> None:
    database = LazyDatabase(tmp_path / "data" / "homing.db")
    assert database.existing() is None
    database.close()
    assert not (tmp_path / "data").exists()


def test_all_who_ask_share_one(tmp_path: Path) -> None:
    database = LazyDatabase(tmp_path / "data" / "homing.db")
    with ThreadPoolExecutor(8) as pool:
        opened = set(pool.map(lambda _: database.open(), range(32)))
    assert opened == {database.existing()}
    database.close()


def test_what_another_process_made_is_there(tmp_path: Path) -> None:
    first, second = LazyDatabase(tmp_path / "homing.db"), LazyDatabase(tmp_path / "homing.db")
    assert second.existing() is None
    first.open().migrate("things", ["CREATE TABLE things(id IDENTITY)", "CREATE INDEX things_by_id ON things(id)"])
    found = second.existing()
    assert found is not None
    assert (found.applied("things"), found.applied("others")) == (2, 0)
    first.close()
    second.close()


def test_the_parts_of_an_app_share_its_database_and_reading_the_models_makes_none(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        assert app.models.default_model() is None
        assert app.models.configured() == []
        assert app.existing_database is None
        assert app.models.database is app.database is app.existing_database
        assert app.models.default_model() is None
        assert app.database.applied("models") == 0
