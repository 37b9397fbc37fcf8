"""Backups of texts that are in PostgreSQL: by the server's own programs, of one moment, and back to an empty place."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import homing
from homing.backup import back_up, restore
from homing.config import EmbeddingSettings, Settings
from homing.errors import InvalidArgument, StoreError
from homing.records import VectorRecord
from homing.stores import open_store
from tests.cluster.members import wait_for
from tests.conftest import Database
from tests.forked import start


@pytest.fixture
def schema(database: Database) -> Iterator[str]:
    name = f'backup "{secrets.token_hex(4)}'
    yield name
    dropped(database, name)


def dropped(database: Database, schema: str) -> None:
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


def test_a_schema_is_dumped_while_it_is_written_and_comes_back_whole(
    database: Database, schema: str, tmp_path: Path
) -> None:
    settings = Settings(data=tmp_path / "home", store=f"{database.url}?schema={schema.replace(' ', '%20')}")
    written, stop = [0], threading.Event()

    def write_on() -> None:
        while not stop.is_set():
            number = written[0]
            # One call is one transaction: of its two records a backup holds both or none.
            store.write([VectorRecord(f"{part}{number:04d}", "c", None, {}, f"灯塔 lamp {number}") for part in "ab"])
            written[0] = number + 1

    with closing(open_store(settings.store)) as store:
        write_on_thread = threading.Thread(target=write_on)
        write_on_thread.start()
        while written[0] < 3:
            stop.wait(0.01)
        made = back_up(settings, tmp_path / "backup")
        stop.set()
        write_on_thread.join()
    [command] = made.commands
    assert command.startswith("pg_dump ")
    assert str(psycopg.conninfo.conninfo_to_dict(database.url)["password"]) not in command
    assert made.files == 1
    with pytest.raises(InvalidArgument, match="already"):
        restore(settings, tmp_path / "backup")
    assert not settings.data.exists()
    dropped(database, schema)
    again = restore(settings, tmp_path / "backup")
    assert again.problems == []
    assert again.commands[0].startswith("pg_restore ")
    with closing(open_store(settings.store)) as store:
        ids = store.ids("c")
        count = len(ids) // 2
        assert ids == [f"{part}{number:04d}" for part in "ab" for number in range(count)]
        assert 3 <= count <= written[0]
        assert {one.id for one in store.search_words("c", "灯塔 lamp 1", 2).found} == {"a0001", "b0001"}
        store.write([VectorRecord("new", "c", None, {}, "written after")])


@pytest.mark.slow
@pytest.mark.parametrize("finishes", [True, False])
def test_a_restore_that_is_killed_can_be_repeated(
    database: Database, schema: str, tmp_path: Path, finishes: bool
) -> None:
    """Also where the program of PostgreSQL that it started outlives it, whether that one comes to its end or not."""
    settings = Settings(data=tmp_path / "home", store=f"{database.url}?schema={schema.replace(' ', '%20')}")
    with homing.open(settings=settings.model_copy(update={"embedding": EmbeddingSettings(provider="")})) as app:
        app.documents.save("novel", "ch1", "灯塔 lighthouse")
    shutil.rmtree(settings.data, ignore_errors=True)
    back_up(settings, tmp_path / "backup")
    dropped(database, schema)
    with psycopg.connect(database.admin_url, autocommit=True) as admin, psycopg.connect(database.url) as other:

        def restoring() -> list[int]:
            return [
                pid
                for (pid,) in admin.execute(
                    "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'homing-restore%' "
                    "AND wait_event_type = 'Lock'"
                )
            ]

        # Until this one says whether it makes the schema, nobody else can.
        other.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        command = ["restore", str(tmp_path / "backup"), "--data", str(settings.data)]
        process = start(command, cwd=tmp_path, env={**os.environ, "HOMING_STORE": settings.store})
        wait_for(lambda: bool(restoring()))
        process.kill()
        process.wait()
        [orphan] = restoring()
        assert not settings.data.exists()
        if finishes:
            other.rollback()
            wait_for(lambda: not admin.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (orphan,)).fetchall())
            again = restore(settings, tmp_path / "backup")
        else:
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(restore, settings, tmp_path / "backup")
                wait_for(lambda: bool(found := restoring()) and orphan not in found)
                other.rollback()
                again = running.result()
    assert again.problems == []
    assert sorted(one.name for one in tmp_path.iterdir()) == ["backup", "home"]
    with homing.open(settings=settings) as app:
        assert app.documents.text("novel", "ch1") == "灯塔 lighthouse"
        assert app.documents.check() == app.store.check() == []


@pytest.mark.slow
def test_a_schema_that_somebody_made_after_a_killed_restore_is_left_alone(
    database: Database, schema: str, tmp_path: Path
) -> None:
    settings = Settings(data=tmp_path / "home", store=f"{database.url}?schema={schema.replace(' ', '%20')}")
    with closing(open_store(settings.store)) as store:
        store.write([VectorRecord("a", "c", None, {}, "text")])
    back_up(settings, tmp_path / "backup")
    dropped(database, schema)
    with psycopg.connect(database.url) as other:
        other.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        command = ["restore", str(tmp_path / "backup"), "--data", str(settings.data)]
        process = start(command, cwd=tmp_path, env={**os.environ, "HOMING_STORE": settings.store})
        waiting = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'homing-restore%'"
        with psycopg.connect(database.admin_url, autocommit=True) as admin:
            wait_for(lambda: bool(admin.execute(waiting.replace("pg_terminate_backend(pid)", "pid")).fetchall()))
            process.kill()
            process.wait()
            admin.execute(waiting.encode())
        other.rollback()
    with closing(open_store(settings.store)) as store:
        store.write([VectorRecord("new", "c", None, {}, "written since")])
        with pytest.raises(InvalidArgument, match="already"):
            restore(settings, tmp_path / "backup")
        assert store.ids("c") == ["new"]


def test_a_backup_of_one_engine_is_not_restored_into_another(database: Database, schema: str, tmp_path: Path) -> None:
    local = Settings(data=tmp_path / "home")
    with closing(open_store(local.store_url)) as store:
        store.write([VectorRecord("a", "c", None, {}, "text")])
    back_up(local, tmp_path / "backup")
    server = Settings(data=tmp_path / "again", store=f"{database.url}?schema={schema.replace(' ', '%20')}")
    with pytest.raises(InvalidArgument, match="holds SQLite"):
        restore(server, tmp_path / "backup")


def test_rows_that_are_hidden_from_a_role_are_not_silently_left_out(
    database: Database, schema: str, tmp_path: Path
) -> None:
    store = f"{database.url}?schema={schema.replace(' ', '%20')}"
    settings = Settings(data=tmp_path / "home", store=store, row_security=True)
    with closing(open_store(settings.store, row_security=True)) as opened:
        opened.write([VectorRecord("a", "c", None, {}, "text")])
    with pytest.raises(StoreError, match="BYPASSRLS"):
        back_up(settings, tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []
