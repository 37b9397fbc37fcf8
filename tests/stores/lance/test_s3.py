"""The same store in object storage, against an S3 server on this machine."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from homing.errors import StoreBusy, StoreCorrupt, StoreError
from homing.stores import open_store
from homing.stores.lance import Address, LanceStore
from homing.stores.lance.catalog import LEASE, Entry
from homing.stores.lance.upkeep import Limits
from homing.testing.store_contract import ids, only, record, vector

SECRET = "s3cr3t-of-the-test"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    boto3 = pytest.importorskip("boto3")
    server_module = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3", endpoint_url=url, aws_access_key_id="me", aws_secret_access_key=SECRET, region_name="us-east-1"
    )
    client.create_bucket(Bucket="homing-test")
    yield url
    server.stop()


@pytest.fixture
def url(endpoint: str, tmp_path: Path) -> str:
    """An empty prefix."""
    options = f"endpoint={endpoint}&allow_http=true&region=us-east-1"
    return f"s3://homing-test/{tmp_path.name}?{options}&aws_access_key_id=me&aws_secret_access_key={SECRET}"


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the storage is asked, as it is asked."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication

    seen: list[str] = []
    answer = DomainDispatcherApplication.__call__

    def counted(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
        seen.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}")
        return answer(self, environ, start_response)

    monkeypatch.setattr(DomainDispatcherApplication, "__call__", counted)
    return seen


class Elsewhere(Address):
    """The same place as another machine reaches it: past our lock."""

    @property
    def lock(self) -> Path:
        return super().lock.with_suffix(".other")


@pytest.mark.slow
def test_records_are_written_found_and_removed(url: str) -> None:
    store = open_store(url)
    store.upsert(
        [
            record("a", 1, text="卧室的灯", room="卧室"),
            record("b", 0, 1, text="kitchen light", room="kitchen"),
            record("c"),
        ]
    )
    store.upsert([record("a", 1, 1, text="臥室燈 lamp", room="卧室"), record("x", 1, collection="其他")])
    store.close()
    again = open_store(url)
    assert ids(again.search("things", vector(0, 1))) == ["b", "a"]
    assert ids(again.search("things", vector(0, 1), options=only(room="卧室"))) == ["a"]
    assert ids(again.search_text("things", "卧室")) == ["a"]
    assert [found.id for found in again.records("things")] == ["a", "b", "c"]
    assert again.delete("things", ["b"]) == 1
    assert again.drop("其他") == 1
    assert [(info.name, info.records) for info in again.collections()] == [("things", 2)]
    assert again.check() == []
    again.close()


@pytest.mark.slow
def test_two_machines_that_insert_the_same_new_ids_leave_each_once(url: str) -> None:
    here, there = LanceStore(Address.of_url(url)), LanceStore(Elsewhere.of_url(url))
    assert here.tables.lock.path != there.tables.lock.path
    here.upsert([record("first", 1)])
    together = threading.Barrier(2)

    def write(store: LanceStore) -> None:
        for turn in range(4):
            together.wait()
            store.upsert([record(f"{turn}-{number}", 1, number) for number in range(10)])

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, store) for store in (here, there)]:
            done.result()
    assert here.check() == []
    assert [info.records for info in there.collections()] == [41]
    here.close()
    there.close()


@pytest.mark.slow
def test_what_another_machine_has_begun_is_undone_only_when_it_was_abandoned(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = LanceStore(Address.of_url(url))
    here.upsert([record("a", 1, text="before")])
    [entry] = here._catalog.entries().values()
    table = here._catalog.open(entry)
    here._catalog.begin([Entry("things", entry.table, "writing", table.version)])
    table.delete("id = 'a'")
    there = LanceStore(Elsewhere.of_url(url))
    with pytest.raises(StoreBusy, match="another machine"):
        there.upsert([record("b", 1)])
    monkeypatch.setattr("homing.stores.lance.catalog.time.time", lambda: 2e9 + LEASE)
    there.upsert([record("b", 1)])
    assert [found.id for found in there.records("things")] == ["a", "b"]
    here.close()
    there.close()


@pytest.mark.slow
def test_a_prefix_with_other_tables_is_left_as_it_is(url: str) -> None:
    import lancedb

    address = Address.of_url(url)
    foreign = lancedb.connect(address.uri, storage_options=dict(address.options))
    foreign.create_table("thesis", [{"id": 1}])
    with pytest.raises(StoreCorrupt, match=r"not a Homing store.*thesis"):
        open_store(url)
    assert foreign.list_tables().tables == ["thesis"]


@pytest.mark.slow
def test_a_bucket_that_does_not_exist_is_an_error_without_the_key(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        open_store(url.replace("homing-test", "nobodys-bucket"))
    assert SECRET not in f"{refused.value} {refused.value.details}"


@pytest.mark.slow
def test_a_small_write_takes_few_requests(url: str, requests: list[str]) -> None:
    store = LanceStore(Address.of_url(url))
    spent = []
    for turn in range(5):
        requests.clear()
        store.upsert([record(f"{turn}-{number}", 1, number, text=f"灯 {number}") for number in range(5)])
        spent.append(len(requests))
    # Each takes some tenths of a second where the storage is far away.
    assert spent[0] <= 40
    assert max(spent[2:]) <= 12, requests
    store.close()


@pytest.mark.slow
def test_machines_write_read_merge_and_see_each_other(url: str) -> None:
    limits = Limits(files=4, quiet=0.0)
    writers = [LanceStore(kind.of_url(url), limits=limits) for kind in (Address, Elsewhere)]
    reader = LanceStore(Elsewhere.of_url(url))
    writers[0].upsert([record("first", 1, text="灯塔 first")])

    def write(number: int) -> None:
        for turn in range(6):
            name = f"{number}-{turn}"
            writers[number].upsert([record(name, 1, turn, text=f"灯塔 word{chr(97 + number)}{chr(97 + turn)}")])
            # Whoever read before and is asked again sees what was written, here or elsewhere.
            assert [one.id for one in reader.get("things", [name])] == [name]
            assert reader.search_words("things", f"word{chr(97 + number)}{chr(97 + turn)}", 1).found[0].id == name

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, number) for number in range(2)]:
            done.result()
    for store in writers:
        store.close()
    assert len(reader.ids("things")) == 13
    assert reader.check() == []
    table = reader._catalog.table("things")
    assert table is not None
    assert table.handle.stats()["fragment_stats"]["num_fragments"] < 13
    reader.close()


WRITER = """
import sys
from homing.stores import open_store
from homing.testing.store_contract import record
store = open_store(sys.argv[1])
for number in range(1000):
    store.upsert([record(f"{number}-{part}", 1, part) for part in range(2)])
    print(number, flush=True)
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_whole_writes(url: str) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        seen = [int(writer.stdout.readline()) for _ in range(4)]
        writer.kill()
        seen += [int(line) for line in writer.stdout.read().split()]
    store = open_store(url)
    found = store.ids("things")
    numbers = sorted({int(one.split("-")[0]) for one in found})
    assert numbers == list(range(len(numbers)))
    assert len(found) == 2 * len(numbers)
    assert len(numbers) > seen[-1]
    store.upsert([record("after", 1)])
    assert store.check() == []
    store.close()
