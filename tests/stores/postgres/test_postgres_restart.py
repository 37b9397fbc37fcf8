"""The server goes away under load and comes back: what was acknowledged is there, what failed is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sized
from contextlib import contextmanager

import numpy as np
import pytest

from homing.database.postgres.server import LocalServer
from homing.errors import HomingError, StoreBusy, StoreUnavailable
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from tests.database.wire import Cut, Wire, committed, not_committed
from tests.effort import times

QUERY = np.array([1, 0], np.float32)


def record(name: str) -> VectorRecord:
    return VectorRecord(name, "c", QUERY, {}, f"词 {name}", "m@2")


def wait_for_more(things: Sized, count: int) -> None:
    """Until there are so many more than now; what has not come after minutes does not come."""
    wanted = len(things) + count
    for _ in range(12_000):
        if len(things) >= wanted:
            return
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_under_load_loses_nothing_that_was_acknowledged(server: LocalServer, mode: str) -> None:
    store = PostgresStore(server.url)
    store.upsert([record("first")])
    acknowledged: set[str] = {"first"}
    refused: set[str] = set()
    errors: list[BaseException] = []
    done = threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not done.is_set():
            name = f"{writer}-{number:06d}"
            number += 1
            try:
                store.upsert([record(name)])
                acknowledged.add(name)
                # Enough is under way at every moment; more would only keep the processors busy.
                done.wait(0.01)
            except BaseException as error:
                errors.append(error)
                if getattr(error, "details", {}).get("outcome") != "unknown":
                    refused.add(name)
                time.sleep(0.01)

    def read() -> None:
        while not done.is_set():
            try:
                assert store.search("c", QUERY)
                assert store.search_text("c", "first")
                done.wait(0.01)
            except HomingError as error:
                errors.append(error)
                time.sleep(0.01)
            except BaseException as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)] + [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(times(1, in_full=4)):
            wait_for_more(acknowledged, 20)
            server.stop(mode=mode)
            wait_for_more(errors, 1)
            server.start()
        before = len(acknowledged)
        wait_for_more(acknowledged, 20)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(acknowledged) >= before + 20, "the store did not recover by itself"
    assert errors, "the restart was not noticed"
    assert {type(error) for error in errors} <= {StoreUnavailable, StoreBusy}
    there = {found.id for found in store.records("c")}
    assert acknowledged <= there
    assert not refused & there
    assert store.check() == []
    store.close()


def test_an_idle_store_does_not_notice_a_restart(server: LocalServer) -> None:
    store = PostgresStore(server.url)
    store.upsert([record("a")])
    assert len(store.search("c", QUERY)) == 1
    server.stop()
    server.start()
    assert len(store.search("c", QUERY)) == 1
    assert store.upsert([record("b")]) == 1
    assert store.collections()[0].records == 2
    server.stop()
    for call in (lambda: store.search("c", QUERY), lambda: store.upsert([record("c")]), store.collections):
        with pytest.raises(StoreUnavailable, match="try again"):
            call()
    server.start()
    assert store.upsert([record("c")]) == 1
    store.close()


@contextmanager
def wired(url: str) -> Iterator[tuple[PostgresStore, Wire]]:
    wire = Wire(url)
    store = PostgresStore(wire.url)
    try:
        yield store, wire
    finally:
        store.close()
        wire.close()


@pytest.mark.parametrize("cut", [committed, not_committed])
def test_a_line_cut_during_the_commit_leaves_no_doubt(server: LocalServer, cut: Cut) -> None:
    with wired(server.url) as (store, wire):
        store.upsert([record("a")])
        wire.cut = cut
        assert store.upsert([record("b")]) == 1
        assert wire.cut is None, "the line was not cut"
        assert [found.id for found in store.records("c")] == ["a", "b"]
        assert store.check() == []
