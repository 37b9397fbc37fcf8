"""`homing postgres`: a server of one's own, as root and as anybody else."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from homing.database.postgres import server
from homing.database.postgres.server import STATE, LocalServer
from homing.errors import StoreError
from tests.another_user import NOBODY, by_root
from tests.forked import run

pytestmark = pytest.mark.slow


class Shell:
    """Runs `homing postgres` as a developer would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str) -> Any:
        inherited = {
            name: value for name, value in os.environ.items() if name == "HOMING_DATA" or not name.startswith("HOMING_")
        }
        done = run(["postgres", *arguments, "--json"], cwd=self.folder, env=inherited)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path)
    yield found
    LocalServer(tmp_path / "data" / "postgres").remove()


def test_a_developer_starts_uses_stops_and_deletes_a_server(shell: Shell, tmp_path: Path) -> None:
    assert shell("status")["running"] is False
    first = shell("start")
    assert first["running"] is True
    with psycopg.connect(first["url"]) as connection:
        row = connection.execute(
            "SELECT extversion, rolsuper, datctype, datcollate FROM pg_extension, pg_roles, pg_database "
            "WHERE extname = 'vector' AND rolname = current_user AND datname = current_database()"
        ).fetchone()
        assert row is not None
        assert row[1:] == (False, "C.UTF-8", "C")
        connection.execute("CREATE TABLE kept(text text)")
        connection.execute("INSERT INTO kept VALUES ('还在')")
    assert shell("start") == first
    assert stat.S_IMODE((tmp_path / "data" / "postgres" / STATE).stat().st_mode) == 0o600
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first["url"].replace("homing:", "homing:wrong"))

    assert shell("stop") == {"stopped": True, "deleted": False}
    assert shell("stop") == {"stopped": False, "deleted": False}
    assert shell("status")["running"] is False
    assert shell("start") == first
    with psycopg.connect(first["url"]) as connection:
        assert connection.execute("SELECT text FROM kept").fetchone() == ("还在",)

    home = Path(json.loads((tmp_path / "data" / "postgres" / STATE).read_text())["home"])
    assert shell("stop", "--delete") == {"stopped": True, "deleted": True}
    assert shell("status") == {"running": False, "folder": str(tmp_path / "data" / "postgres"), "port": 0, "url": ""}
    assert not (home / "data").exists()


def test_a_port_can_be_chosen_and_one_in_use_is_told(folder_of_servers: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        chosen = taken.getsockname()[1]
        server = LocalServer(folder_of_servers / "port")
        with pytest.raises(StoreError, match="did not start"):
            server.start(port=chosen)
    assert server.start(port=chosen).port == chosen
    server.remove()


@contextmanager
def somebody_else() -> Iterator[int]:
    """Not root for a while."""
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield NOBODY
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


@by_root
def test_it_runs_for_somebody_who_is_not_root(folder_of_servers: Path) -> None:
    folder = folder_of_servers / "theirs"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    with somebody_else() as nobody:
        server = LocalServer(folder / "postgres")
        try:
            assert server.start().running
            assert server.data.stat().st_uid == nobody
            with psycopg.connect(server.url) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
            assert server.stop()
        finally:
            server.remove()
    assert not (folder / "postgres" / "data").exists()


def test_a_creation_that_was_killed_is_begun_again(folder_of_servers: Path) -> None:
    server = LocalServer(folder_of_servers / "killed")
    (server.folder / "data.unfinished").mkdir(parents=True)
    (server.folder / "data.unfinished" / "half").write_text("half")
    assert server.start().running
    server.remove()


def test_a_folder_of_something_else_is_left_alone(folder_of_servers: Path) -> None:
    server = LocalServer(folder_of_servers / "foreign")
    (server.folder / "data").mkdir(parents=True)
    (server.folder / "data" / "precious").write_text("mine")
    with pytest.raises(StoreError, match="another folder"):
        server.start()
    server.remove()
    assert (server.folder / "data" / "precious").read_text() == "mine"
    (server.folder / STATE).write_text("{half")
    with pytest.raises(StoreError, match="cannot be read"):
        server.status()


def test_a_copy_of_the_programs_finds_its_libraries(tmp_path: Path) -> None:
    """Root lends the server to an account that cannot enter every folder, and then copies the programs for it."""
    copied = server._copy(server._installation(), tmp_path / "installation")
    for program in ("postgres", "initdb", "pg_dump"):
        told = subprocess.run([copied / "bin" / program, "--version"], capture_output=True, text=True, check=True)
        assert "PostgreSQL" in told.stdout
    assert server._copy(server._installation(), tmp_path / "installation") == copied
