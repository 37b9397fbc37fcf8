"""Stores are opened again, opened twice, closed, and used by many threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from homing.errors import StoreError
from homing.stores.store import Store
from homing.testing.store_contract.samples import Opened, OpenStore, ids, only, record, vector


class SharingContract(Opened):
    """Durability and concurrency."""

    def test_what_was_written_is_there_after_opening_again(self, open_store: OpenStore) -> None:
        store = open_store()
        store.upsert([record("a", 1, text="持久 durable", kind="x"), record("b", 0, 1, text="gone")])
        store.delete("things", ["b"])
        store.close()
        again = open_store()
        try:
            assert ids(again.search("things", vector(1), options=only(kind="x"))) == ["a"]
            assert ids(again.search_text("things", "持久")) == ["a"]
            assert ids(again.search("things", vector(0, 1))) == ["a"]
            again.upsert([record("c", 1, text="more")])
            assert ids(again.search("things", vector(1))) == ["a", "c"]
        finally:
            again.close()

    def test_a_second_store_on_the_same_data_sees_every_change(self, open_store: OpenStore) -> None:
        one, two = open_store(), open_store()
        try:
            for number in range(30):
                one.upsert([record(f"{number:02d}", 1, number / 10, text=f"词{number}")])
                assert len(two.search("things", vector(1), limit=100)) == number + 1
                assert ids(two.search_text("things", f"词{number}"))[0] == f"{number:02d}"
            two.delete("things", ["00"])
            two.upsert([record("01", -1, text="替换")])
            assert ids(one.search("things", vector(1), limit=100)) == [f"{n:02d}" for n in range(2, 30)] + ["01"]
            two.drop("things")
            assert one.search("things", vector(1)) == []
        finally:
            one.close()
            two.close()

    def test_a_closed_store_refuses_every_call(self, open_store: OpenStore) -> None:
        store = open_store()
        store.upsert([record("a", 1)])
        store.close()
        store.close()
        for call in (
            lambda: store.upsert([record("b", 1)]),
            lambda: store.search("things", vector(1)),
            lambda: store.search_text("things", "x"),
            lambda: store.get("things", ["a"]),
            lambda: list(store.records("things")),
            lambda: store.ids("things"),
            lambda: store.delete("things", ["a"]),
            lambda: store.drop("things"),
            lambda: store.collections(),
            lambda: store.check(),
        ):
            with pytest.raises(StoreError):
                call()

    def test_threads_write_and_search_at_once(self, store: Store) -> None:
        writers, rounds = 4, 25
        done = threading.Event()

        def write(writer: int) -> None:
            for number in range(rounds):
                store.upsert([record(f"{writer}-{number}", 1, number / 100, text=f"线程 thread {writer}", w=writer)])
                if number % 5 == 4:
                    store.delete("things", [f"{writer}-{number - 1}"])

        def search() -> int:
            most = 0
            while not done.is_set():
                found = store.search("things", vector(1), limit=200)
                assert [match.distance for match in found] == sorted(match.distance or 0 for match in found)
                assert len(set(ids(found))) == len(found)
                store.search_text("things", "线程", options=only(w=1))
                most = max(most, len(found))
            return most

        with ThreadPoolExecutor(writers + 2) as pool:
            searching = [pool.submit(search) for _ in range(2)]
            try:
                for written in [pool.submit(write, writer) for writer in range(writers)]:
                    written.result()
            finally:
                done.set()
            assert all(0 <= result.result() <= writers * rounds for result in searching)
        kept = writers * (rounds - rounds // 5)
        assert len(store.search("things", vector(1), limit=200)) == kept
        assert len(store.search_text("things", "thread", limit=200)) == kept
        assert store.check() == []

    def test_a_record_that_is_replaced_is_never_missed(self, store: Store) -> None:
        store.upsert([record("a", 1, text="永远 always")])
        done = threading.Event()

        def replace() -> None:
            try:
                for number in range(60):
                    store.upsert([record("a", 1, number / 1000, text="永远 always")])
            finally:
                done.set()

        with ThreadPoolExecutor(1) as pool:
            replacing = pool.submit(replace)
            while not done.is_set():
                assert ids(store.search("things", vector(1))) == ["a"]
                assert ids(store.search_text("things", "永远")) == ["a"]
            replacing.result()
