"""What is remembered is durable and found by words when the call returns, whatever happens next."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from homing.engine import Engine
from homing.memory import Memory
from homing.records import VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from tests.forked import run_python
from tests.memory.killed_writers import Parts, drain, kill

ROOT = Path(__file__).parents[2]

REMEMBERS = """
import os, signal, sys, threading
from homing.engine import Engine
from homing.memory import Memory
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder

class Silent(FakeEmbedder):
    def embed(self, texts, *, kind="document"):
        threading.Event().wait()

memory = Memory(Engine(SqliteStore(sys.argv[1]), Silent()))
memory.remember("knowledge", "发票在每月第一个工作日寄出 invoice", entry_id="k", tags=["钱"])
os.kill(os.getpid(), signal.SIGKILL)
"""

READS = """
import json, sys
from homing.engine import Engine
from homing.memory import Memory
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder

store = SqliteStore(sys.argv[1])
engine = Engine(store, FakeEmbedder())
memory = Memory(engine)
found = memory.recall("发票")
print(json.dumps([[hit.id, hit.pending] for hit in found] + [found.degraded, memory.count("knowledge")]))
assert not engine.worker.running
engine.close()
store.close()
"""


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return run_python(["-c", code, str(path)], cwd=ROOT)


@pytest.mark.slow
def test_killed_right_after_remembering_a_process_that_only_reads_finds_it_by_its_words(tmp_path: Path) -> None:
    path = tmp_path / "homing.db"
    assert run(REMEMBERS, path).returncode == -9
    done = run(READS, path)
    assert json.loads(done.stdout) == [["k", True], False, 1], done.stderr
    store = SqliteStore(path)
    engine = Engine(store, FakeEmbedder())
    assert engine.flush()
    [hit] = Memory(engine).recall("发票")
    assert (hit.pending, hit.metadata) == (False, {"tags": ["钱"]})
    engine.close()
    store.close()


@pytest.mark.slow
def test_killed_at_random_moments_nothing_saved_is_lost_and_nothing_deleted_stays(tmp_path: Path) -> None:
    aftermath = kill(tmp_path, rounds=15)
    assert aftermath.acknowledged > 15
    assert aftermath.whole, aftermath


@pytest.mark.slow
def test_several_processes_share_what_waits_and_embed_nothing_twice(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    notes = parts.engine.collection("notes")
    records = [VectorRecord(str(number), "notes", None, {}, f"text {number}") for number in range(300)]
    parts.engine.database.write(lambda transaction: notes.write(records, transaction), notes.scope)
    embedded = drain(tmp_path, processes=3)
    assert len(embedded) == 300
    assert set(embedded.values()) == {1}
    assert parts.store.pending("notes") == 0
    parts.engine.close()
    parts.store.close()
