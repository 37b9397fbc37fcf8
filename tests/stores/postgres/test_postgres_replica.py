"""Reads go to a replica, without ever missing what this store has written, and without needing it to be there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from urllib.parse import quote

import numpy as np
import psycopg
import pytest

from homing.config import Settings
from homing.database.postgres.server import STATE, LocalServer, prepare
from homing.doctor.finding import Finding
from homing.doctor.server import served
from homing.errors import StoreReadOnly, StoreUnavailable
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore

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


def test_the_doctor_knows_whether_the_replica_follows(server: LocalServer, standby: LocalServer) -> None:
    settings = Settings(store=f"{server.url}?read_url={quote(standby.url, safe='')}")
    PostgresStore(server.url).close()

    def replica() -> Finding:
        [found] = [one for one in served(settings) if one.check == "replica"]
        return found

    with psycopg.connect(standby.admin_url, autocommit=True) as connection:
        assert replica().status == "ok"
        connection.execute("SELECT pg_wal_replay_pause()")
        paused = replica()
        assert paused.status == "warn"
        connection.execute(paused.mend.split("'")[1].encode())
        assert replica().status == "ok"
    standby.stop()
    assert (replica().status, "primary answers" in replica().detail) == ("warn", True)
