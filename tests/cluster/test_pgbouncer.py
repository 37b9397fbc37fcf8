"""Behind pgbouncer in transaction mode: sessions are everybody's, and nobody is told what was said in another."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import homing
from homing.config import EmbeddingSettings, Settings
from homing.database.postgres.listening import DEAF
from homing.records import VectorRecord
from homing.server.users import Users
from homing.stores.postgres import indexing
from homing.stores.postgres.store import PostgresStore
from tests.conftest import Database

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed; apt-get install pgbouncer"),
]


@pytest.fixture(scope="module")
def pooler(postgres: Database, folder_of_servers: Path) -> Iterator[str]:
    """The address of a pooler with three sessions for everybody."""
    assert PROGRAM is not None
    server = conninfo_to_dict(postgres.url)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = folder_of_servers / "pgbouncer"
    folder.mkdir()
    place = " ".join(f"{name}={server[name]}" for name in ("host", "port", "dbname", "user", "password"))
    (folder / "users.txt").write_text(f'"{server["user"]}" "any"\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{server['dbname']} = {place}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {folder / 'users.txt'}\npool_mode = transaction\n"
        "default_pool_size = 3\nmax_client_conn = 200\n"
    )
    as_nobody = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen(
        [PROGRAM, *as_nobody, str(folder / "pgbouncer.ini")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"postgresql://{server['user']}@127.0.0.1:{port}/{server['dbname']}"
    try:
        while True:
            assert process.poll() is None, "pgbouncer did not start"
            try:
                psycopg.connect(url, connect_timeout=5).close()
                break
            except psycopg.OperationalError:
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def test_many_users_at_once_share_few_sessions_and_nothing_else(
    pooler: str, new_schema: object, tmp_path: Path
) -> None:
    assert callable(new_schema)
    address = f"{pooler}?{new_schema().partition('?')[2]}"
    settings = Settings(store=address, row_security=True, embedding=EmbeddingSettings(provider=""))
    names = [f"user{number}" for number in range(6)]
    with homing.open(tmp_path, settings=settings) as app, closing(Users(app)) as users:

        def write(name: str) -> None:
            with users.lease(name) as own:
                for number in range(6):
                    own.documents.save("p", f"d{number}", f"{name}的灯塔 {number}\n\n{name} second")
                    own.memory.remember("knowledge", f"{name} keeps key {number}")
                    hits = own.documents.search(None, "灯塔", mode="keyword", top_k=100)
                    assert [hit.text for hit in hits if name not in hit.text] == []
                    assert len(hits) == number + 1

        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(write, names))
        for name in names:
            with users.lease(name) as own:
                assert own.memory.count("knowledge") == 6
                assert own.documents.check() == own.store.check() == []
        assert app.documents.projects() == []
    # Whoever has a session next finds it as a new one is.
    with ThreadPoolExecutor(6) as pool:
        for path, user, prepared in pool.map(lambda _: _session(pooler), range(6)):
            assert "homing_" not in path
            assert not user
            assert prepared == 0


def _session(pooler: str) -> tuple[str, str, int]:
    with psycopg.connect(pooler, autocommit=True, prepare_threshold=None) as connection:
        row = connection.execute(
            "SELECT current_setting('search_path'), current_setting('homing.user_id', true), "
            "(SELECT count(*) FROM pg_prepared_statements WHERE NOT from_sql), pg_sleep(0.05)"
        ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def test_an_index_is_built(pooler: str, new_schema: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(new_schema)
    monkeypatch.setattr(indexing, "WORTHWHILE", 200)
    rows = np.random.default_rng(3).standard_normal((300, 8)).astype(np.float32)
    with closing(PostgresStore(pooler, schema=new_schema().rpartition("=")[2])) as store:
        store.upsert(VectorRecord(f"{n:03d}", "c", row, {}, "", "m@8") for n, row in enumerate(rows))
        store.build_indexes()
        found = store.database.read(lambda own: own.rows("SELECT indexed FROM spaces"))
        assert found == [(True,)]
        assert store.search("c", rows[7], 1)[0].id == "007"


def test_behind_a_pooler_it_asks_and_leaves_no_session_listening(
    pooler: str, new_schema: Callable[[], str], tmp_path: Path
) -> None:
    settings = Settings(store=f"{pooler}?{new_schema().partition('?')[2]}", embedding=EmbeddingSettings(provider=""))
    with homing.open(tmp_path, settings=settings) as app, psycopg.connect(pooler, autocommit=True) as session:
        assert app.database.listen(lambda: None) == DEAF
        [listener] = [one for one in threading.enumerate() if one.name == "homing-listener"]
        listener.join()
        assert app.database.listen(lambda: None) == DEAF
        app.database.write(lambda own: own.notify())
        assert session.execute("SELECT pg_listening_channels()").fetchall() == []
