"""Reads go to a replica, without ever missing what this store has written, and without needing it to be there."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import quote

import numpy as np
import psycopg
import pytest
from fastapi.testclient import TestClient

import homing
from homing.config import EmbeddingSettings, Settings
from homing.database.postgres.driver import Address
from homing.database.postgres.server import STATE, LocalServer, prepare
from homing.doctor import server as doctor_of_servers
from homing.doctor.finding import Finding
from homing.doctor.server import served
from homing.errors import StoreReadOnly, StoreUnavailable
from homing.records import VectorRecord
from homing.server.application import create_app
from homing.server.tokens import Tokens
from homing.stores.postgres.store import PostgresStore
from homing.testing.loopback import LoopbackApi
from tests.cluster.members import wait_for
from tests.conftest import Database
from tests.doctor.planting import BY_HAND, Asked, Planting, assert_found_and_mended, planted_in
from tests.server.conftest import LOOPBACK
from tests.stores.postgres.test_postgres_doctor import HomeOnAServer

pytestmark = pytest.mark.slow
QUERY = np.array([1, 0], np.float32)


def record(name: str) -> VectorRecord:
    return VectorRecord(name, "c", QUERY, {}, f"副本 replica {name}", "m@2")


@pytest.fixture(scope="module")
def standby_of_module(server_of_module: LocalServer) -> Iterator[LocalServer]:
    """A streaming standby of the server, made as an administrator would."""
    folder = server_of_module.folder.with_name(server_of_module.folder.name + "-standby")
    programs = prepare(folder)
    state = json.loads((server_of_module.folder / STATE).read_text())
    url = server_of_module.admin_url.replace("/homing", "/postgres")
    data = programs.home / "data"
    programs.run("pg_basebackup", "--no-sync", "-d", url, "-D", data, "-R", "-X", "stream", "-c", "fast")
    (folder / STATE).write_text(json.dumps(state | {"home": str(programs.home), "port": 0}))
    replica = LocalServer(folder, settings={"fsync": "off"})
    replica.start()
    yield replica
    replica.remove()


@pytest.fixture
def standby(server: LocalServer, standby_of_module: LocalServer) -> LocalServer:
    """The standby, running when the test begins."""
    standby_of_module.start()
    return standby_of_module


def test_what_was_written_is_found_though_the_replica_lags(server: LocalServer, standby: LocalServer) -> None:
    store = PostgresStore(server.url, read_url=standby.url)
    for number in range(20):
        store.upsert([record(f"{number:02d}")])
        assert len(store.search("c", QUERY, limit=100)) == number + 1
        assert len(store.search_text("c", "副本", limit=100)) == number + 1
    with psycopg.connect(standby.admin_url, autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        try:
            store.upsert([record("new")])
            assert [match.id for match in store.search_text("c", "new")] == ["new"]
            assert len(store.search("c", QUERY, limit=100)) == 21
        finally:
            connection.execute("SELECT pg_wal_replay_resume()")
    store.close()


def test_without_its_replica_a_store_works_on(server: LocalServer, standby: LocalServer) -> None:
    store = PostgresStore(server.url, read_url=standby.url)
    store.upsert([record("a")])
    assert len(store.search("c", QUERY)) == 1
    standby.stop()
    assert len(store.search("c", QUERY)) == 1
    assert len(store.for_user(1).search("c", QUERY)) == 0
    standby.start()
    server.stop()
    assert [match.id for match in store.search("c", QUERY)] == ["a"], "the replica answers while the primary is away"
    with pytest.raises(StoreUnavailable):
        store.upsert([record("b")])
    store.close()


def test_a_replica_cannot_be_written_to(server: LocalServer, standby: LocalServer) -> None:
    PostgresStore(server.url).close()
    with psycopg.connect(standby.admin_url) as connection:
        for _ in range(2_400):
            if connection.execute("SELECT to_regclass('homing.migrations')").fetchone() != (None,):
                break
            connection.rollback()
            time.sleep(0.05)
    store = PostgresStore(standby.url)
    with pytest.raises(StoreReadOnly, match="primary"):
        store.upsert([record("a")])
    store.close()


def test_the_doctor_names_the_replica_with_its_lag(server: LocalServer, standby: LocalServer) -> None:
    settings = Settings(store=f"{server.url}?read_url={quote(standby.url, safe='')}")
    PostgresStore(server.url).close()

    def replica() -> Finding:
        [found] = [one for one in served(settings) if one.check == "replica"]
        return found

    name = str(Address(standby.url))
    with psycopg.connect(standby.admin_url, autocommit=True) as connection:
        wait_for(lambda: replica().detail == f"{name} follows, 0 bytes (0 s) behind")
        connection.execute("SELECT pg_wal_replay_pause()")
        with closing(PostgresStore(server.url)) as store:
            store.upsert([record("unseen")])
        paused = replica()
        assert paused.status == "warn"
        assert name in paused.detail
        assert " is 0 bytes" not in paused.detail
        connection.execute("SELECT pg_wal_replay_resume()")


def test_servers_on_a_replica_show_everybody_their_own_writes_at_once(
    server: LocalServer, standby: LocalServer, tmp_path: Path
) -> None:
    """Those of others when the replica has them; and a token that was revoked is worthless at once."""
    settings = Settings(
        store=f"{server.url}?read_url={quote(standby.url, safe='')}", embedding=EmbeddingSettings(provider="")
    )
    with (
        homing.open(tmp_path / "1", settings=settings) as one,
        homing.open(tmp_path / "2", settings=settings) as two,
        TestClient(create_app(one), base_url=LOOPBACK) as here,
        TestClient(create_app(two), base_url=LOOPBACK) as there,
        psycopg.connect(standby.admin_url, autocommit=True) as connection,
    ):
        token = Tokens(one.database).create("owner", "admin")
        for client in (here, there):
            client.headers["authorization"] = f"Bearer {token.secret}"

        def found(client: TestClient, query: str) -> list[str]:
            asked = {"query": query, "mode": "keyword", "weaker": True}
            told = client.post("/documents/p/search", json=asked).json()
            return sorted(hit["text"] for hit in told.get("hits", []) if query in hit["text"])

        def save(client: TestClient, name: str, text: str) -> None:
            assert client.put(f"/documents/p/{name}", json={"text": text}).status_code == 200

        save(here, "a", "灯塔 first")
        wait_for(lambda: found(there, "灯塔") == ["灯塔 first"])
        connection.execute("SELECT pg_wal_replay_pause()")
        try:
            save(here, "a", "灯塔 second")
            save(here, "b", "灯塔 second too")
            one.memory.remember("knowledge", "灯塔 keeper")
            assert found(here, "second") == ["灯塔 second", "灯塔 second too"]
            assert [hit.text for hit in one.memory.recall("keeper")] == ["灯塔 keeper"]
            # The replica answers, and has not seen that.
            assert (found(there, "second"), found(there, "first")) == ([], ["灯塔 first"])
            assert two.memory.count("knowledge") == 0
            # What it does not show is not lost by writing there: that sees everything.
            save(there, "a", "灯塔 third")
            assert found(there, "灯塔") == ["灯塔 second too", "灯塔 third"]
            Tokens(one.database).revoke(token.token.id)
            Tokens(one.database).create("owner", "admin")
            assert there.get("/documents").status_code == 401
        finally:
            connection.execute("SELECT pg_wal_replay_resume()")
        for app in (one, two):
            wait_for(lambda app=app: app.documents.text("p", "a") == "灯塔 third")  # type: ignore[misc]
            assert app.documents.check() == app.store.check() == []


CASES: dict[str, Planting] = {}
case = partial(planted_in, CASES)


class HomeOnTwo(HomeOnAServer):
    """A home on a primary with a replica."""

    primary: LocalServer
    replica: LocalServer


@pytest.fixture
def home(
    server: LocalServer, standby: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HomeOnTwo]:
    with LoopbackApi() as api:
        made = HomeOnTwo(tmp_path, tmp_path / "data", api, monkeypatch)
        made.primary, made.replica = server, standby
        made.database = Database(server.url, server.admin_url)
        made.without_model()
        made.tell(f'store = "{server.url}?read_url={quote(standby.url, safe="")}"')
        with made.open() as app:
            app.memory.remember("knowledge", "账单 invoices")
        with psycopg.connect(server.admin_url) as connection:
            [end] = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone() or [""]
        with psycopg.connect(standby.admin_url, autocommit=True) as connection:
            while connection.execute("SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", (end,)).fetchone() == (True,):
                time.sleep(0.01)
        yield made


@case("replica paused")
def replay_is_paused(home: HomeOnTwo) -> Generator[Asked]:
    with psycopg.connect(home.replica.admin_url, autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
    yield Asked()


@case("replica behind")
def replay_is_held_up(home: HomeOnTwo) -> Generator[Asked]:
    """By a setting of the replica; any time behind is too much for this test."""
    home.patch.setattr(doctor_of_servers, "BEHIND", 0.0)
    with psycopg.connect(home.replica.admin_url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET recovery_min_apply_delay = '1h'")
        connection.execute("SELECT pg_reload_conf()")
        with home.open() as app:
            app.memory.remember("knowledge", "海 sea")
        yield BY_HAND
        connection.execute("ALTER SYSTEM RESET recovery_min_apply_delay")
        connection.execute("SELECT pg_reload_conf()")
    home.patch.setattr(doctor_of_servers, "BEHIND", 60.0)


@case("server down")
def the_server_is_stopped(home: HomeOnTwo) -> Generator[Asked]:
    home.tell(f'store = "{home.primary.url}"')
    home.primary.stop()
    yield BY_HAND
    home.primary.start()


@case("own server down")
def the_server_of_the_home_is_stopped(home: HomeOnTwo) -> Generator[Asked]:
    home.tell(f'store = "{home.primary.url}"')
    home.data.mkdir()
    (home.data / "postgres").symlink_to(home.primary.folder)
    home.primary.stop()
    yield Asked()


@pytest.mark.parametrize("fault", CASES)
def test_a_fault_is_found_and_mended_by_what_its_finding_says(fault: str, home: HomeOnTwo) -> None:
    assert_found_and_mended(CASES[fault], fault, home, home.administration())
