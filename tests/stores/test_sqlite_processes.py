"""Several processes on one file, and processes that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import homing
from homing.database.sqlite import SqliteDatabase, database
from homing.errors import StoreBusy, StoreError
from homing.records import VectorRecord
from homing.stores.sqlite import SqliteStore
from tests.effort import times
from tests.forked import Process, start_python

SOURCE = str(Path(homing.__file__).parent.parent)
START = """
import sys, time
from pathlib import Path
import numpy as np
from homing.records import VectorRecord
from homing.stores.sqlite import SqliteStore
path, me = sys.argv[1], sys.argv[2]
def record(name, collection="c"):
    row = np.random.default_rng(abs(hash(name))).standard_normal(32).astype(np.float32)
    return VectorRecord(name, collection, row, {"by": me, "tags": ["x", me]}, f"写入 {name} by {me}", "m@32")
"""


def start(code: str, *arguments: str) -> Process:
    return start_python(
        ["-c", START + code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: Process) -> str:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return str(out)


@pytest.mark.slow
def test_processes_that_create_the_same_file_at_once_all_succeed(tmp_path: Path) -> None:
    code = """
for number in range(20):
    # All begin at the same moment.
    Path(f"{path}/{number}-{me}").touch()
    while len(list(Path(path).glob(f"{number}-*"))) < 4:
        time.sleep(0.001)
    store = SqliteStore(f"{path}/{number}.db")
    store.upsert([record(f"{me}-{n}") for n in range(5)])
    store.close()
"""
    for process in [start(code, str(tmp_path), str(me)) for me in range(4)]:
        finished(process)
    for number in range(20):
        store = SqliteStore(tmp_path / f"{number}.db")
        assert store.collections()[0].records == 20
        assert store.check() == []
        store.close()


@pytest.mark.slow
def test_two_writers_and_a_reader_get_along(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    SqliteStore(path).close()
    write = """
store = SqliteStore(path)
for n in range(150):
    store.upsert([record(f"{me}-{n}"), record("shared")])
    if n % 10 == 9:
        store.delete("c", [f"{me}-{n - 1}"])
store.close()
"""
    writers = [start(write, str(path), me) for me in ("one", "two")]
    store = SqliteStore(path)
    seen = 0
    while any(writer.poll() is None for writer in writers):
        found = store.search("c", np.ones(32, np.float32), limit=1000)
        names = [match.id for match in found]
        assert len(set(names)) == len(names)
        if seen:
            assert "shared" in names
        seen = max(seen, len(names))
        by_words = store.search_text("c", "写入", limit=1000)
        assert len({match.id for match in by_words}) == len(by_words)
    for writer in writers:
        finished(writer)
    assert len(store.search("c", np.ones(32, np.float32), limit=1000)) == 2 * 135 + 1
    assert len(store.search_text("c", "写入", limit=1000)) == 2 * 135 + 1
    assert store.check() == []
    store.close()


@pytest.mark.slow
def test_a_process_killed_while_writing_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    write = """
store = SqliteStore(path)
print("ready", flush=True)
batch = 0
while True:
    replaced = [record(f"{n}-{batch % 7}", "d") for n in range(150)]
    store.upsert(replaced + [record(f"{me}-{batch}-{n}") for n in range(150)])
    batch += 1
"""
    moments = random.Random(20)
    for attempt in range(times(3, in_full=30)):
        process = start(write, str(path), str(attempt))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0.01, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        store = SqliteStore(path)
        assert store.check() == []
        for info in store.collections():
            assert info.name == "e" or info.records % 150 == 0
            assert info.embedded == info.records
            assert len(store.search(info.name, np.ones(32, np.float32), limit=10_000)) == min(info.records, 10_000)
        store.upsert([VectorRecord(f"after-{attempt}", "e", np.ones(32, np.float32), {}, "之后", "m@32")])
        assert len(store.search_text("e", "之后")) == attempt + 1
        store.close()
    store = SqliteStore(path)
    assert store.collections()[0].records > 0
    store.close()


def test_a_writer_that_waits_too_long_says_that_the_store_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_MS", 50)
    store, other = SqliteStore(tmp_path / "x.db"), SqliteDatabase(tmp_path / "x.db")
    with other.writing(), pytest.raises(StoreBusy, match="another process"):
        store.delete("c", ["a"])
    store.upsert([VectorRecord("a", "c", None)])
    store.close()
    other.close()


def test_a_forked_process_is_told_to_open_its_own(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    child = os.fork()
    if not child:
        try:
            store.collections()
            os._exit(1)
        except StoreError:
            store.close()
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.upsert([VectorRecord("a", "c", None)])
    assert store.collections()[0].records == 1
    store.close()
