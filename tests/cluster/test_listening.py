"""A worker that has nothing to do hears of work at once, and hardly asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from homing.database.postgres.database import PostgresDatabase
from homing.database.postgres.listening import HEARING
from homing.engine import Engine
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from homing.testing.fake import FakeEmbedder
from tests.cluster.members import wait_for
from tests.conftest import Database

pytestmark = pytest.mark.slow


def opened(address: str) -> PostgresDatabase:
    url, _, query = address.partition("?")
    return PostgresDatabase(url, schema=query.rpartition("=")[2])


def test_whoever_listens_hears_what_others_commit_and_nothing_else(new_schema: Callable[[], str]) -> None:
    address, heard = new_schema(), threading.Semaphore(0)
    with closing(opened(address)) as one, closing(opened(address)) as other, closing(opened(new_schema())) as elsewhere:
        wait_for(lambda: one.listen(heard.release) == HEARING)
        # It may have missed something before it listened.
        assert heard.acquire(timeout=120)
        for quiet in (lambda: elsewhere.write(lambda own: own.notify()), lambda: other.write(lambda own: own.now())):
            quiet()
        with pytest.raises(ValueError, match="back"):
            other.write(_taken_back)
        other.write(lambda own: own.notify())
        assert heard.acquire(timeout=120)
        assert not heard.acquire(blocking=False)


def _taken_back(transaction: object) -> None:
    transaction.notify()  # type: ignore[attr-defined]
    raise ValueError("taken back")


def test_a_listener_whose_connection_is_cut_listens_again(
    new_schema: Callable[[], str], postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, heard = new_schema(), threading.Semaphore(0)
    monkeypatch.setattr("homing.database.postgres.listening.AGAIN", 0.01)
    with closing(opened(address)) as one, psycopg.connect(postgres.admin_url, autocommit=True) as admin:
        wait_for(lambda: one.listen(heard.release) == HEARING)
        assert heard.acquire(timeout=120)
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN homing%'"
        assert admin.execute(cut).fetchall()
        # Told that it hears nothing for now, and again when it does.
        for _ in range(2):
            assert heard.acquire(timeout=120)
        one.write(lambda own: own.notify())
        assert heard.acquire(timeout=120)


def test_an_idle_worker_embeds_what_another_process_writes(new_schema: Callable[[], str]) -> None:
    address = new_schema()
    with closing(opened(address)) as database, closing(opened(address)) as theirs:
        idle = Engine(PostgresStore(database), FakeEmbedder(8))
        writer = Engine(PostgresStore(theirs), FakeEmbedder(8), background=False)
        idle.start()
        wait_for(lambda: idle.database.listen(idle.worker.notify) == HEARING)
        writer.collection("notes").write([VectorRecord("1", "notes", None, {}, "灯塔")])
        wait_for(lambda: not writer.work.waiting())
        idle.close()
        writer.close(0.0)
