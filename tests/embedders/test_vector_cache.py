"""The file behind a cached provider: bounded, shared, and never worth an error."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import stat
import subprocess
from pathlib import Path

import apsw
import numpy as np
import pytest

from homing.embedders.cached import Cached
from homing.testing.fake import FakeEmbedder
from homing.vectors import Scale
from tests.forked import start_python


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


@pytest.fixture
def fake() -> FakeEmbedder:
    return FakeEmbedder(scale=Scale(0.3, 12))


def test_the_file_stays_within_its_bound_and_keeps_what_is_used(fake: FakeEmbedder, path: Path) -> None:
    bound = 600_000
    cached = Cached(fake, path, max_bytes=bound, memory_bytes=0)
    cached.embed(["常用"])
    for batch in range(30):
        cached.embed([f"{batch}-{n}" for n in range(200)])
        _age_everything_but(path, fake, "常用")
    cached.close()
    db = apsw.Connection(str(path))
    kept = db.execute("select count(*) from vector").get
    db.close()
    assert 300 < kept < 6001
    assert path.stat().st_size < bound * 1.3
    calls = fake.calls
    again = Cached(fake, path)
    again.embed(["常用"])
    assert fake.calls == calls
    again.close()


def _age_everything_but(path: Path, fake: FakeEmbedder, text: str) -> None:
    db = apsw.Connection(str(path))
    db.set_busy_timeout(1000)
    db.execute("update vector set seen = seen - 1 where id > 1")
    db.close()


def test_reading_writes_at_most_once_a_day(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path, memory_bytes=0)
    cached.embed(["a"])
    db = apsw.Connection(str(path))
    before = db.pragma("data_version")
    cached.embed(["a"])
    assert db.pragma("data_version") == before
    db.execute("update vector set seen = seen - 48")
    aged = db.execute("select seen from vector").get
    cached.embed(["a"])
    assert db.execute("select seen from vector").get == aged + 48
    db.close()
    cached.close()


@pytest.mark.parametrize(
    "content", [b"this is not a database" * 100, b"SQLite format 3\x00" + os.urandom(4096)], ids=["text", "garbage"]
)
def test_a_broken_file_is_rebuilt_with_a_warning(
    fake: FakeEmbedder, path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        cached = Cached(fake, path)
    assert "started afresh" in caplog.text
    cached.embed(["a"])
    cached.close()
    again = Cached(fake, path)
    again.embed(["a"])
    assert fake.calls == 1
    again.close()


def test_a_file_that_breaks_while_it_is_in_use_is_rebuilt(
    fake: FakeEmbedder, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cached = Cached(fake, path, memory_bytes=0)
    expected = cached.embed([f"t{n}" for n in range(500)])
    db = apsw.Connection(str(path))
    db.execute("pragma wal_checkpoint(truncate)")
    db.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(cached.embed([f"t{n}" for n in range(500)]), expected)
        np.testing.assert_array_equal(cached.embed([f"t{n}" for n in range(500)]), expected)
    assert "started afresh" in caplog.text
    assert fake.calls in (2, 3)
    cached.embed([f"t{n}" for n in range(500)])
    assert fake.calls in (2, 3)
    cached.close()


def test_the_file_of_another_application_is_left_alone(
    fake: FakeEmbedder, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = apsw.Connection(str(path))
    db.execute("create table vector (mine text); insert into vector values ('precious')")
    db.close()
    with caplog.at_level(logging.WARNING):
        cached = Cached(fake, path)
    assert cached.embed(["a"]).shape == (1, 64)
    cached.close()
    assert "going on without it" in caplog.text
    assert apsw.Connection(str(path)).execute("select mine from vector").get == "precious"


def test_a_path_that_cannot_be_a_file_costs_a_warning(
    fake: FakeEmbedder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        cached = Cached(fake, tmp_path)
    assert cached.embed(["a"]).shape == (1, 64)
    cached.embed(["a"])
    assert fake.calls == 1
    assert "going on without it" in caplog.text
    cached.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_costs_a_warning(fake: FakeEmbedder, tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    cached = Cached(fake, tmp_path / "cache.db")
    assert cached.embed(["a"]).shape == (1, 64)
    cached.close()


def test_the_folder_of_the_file_is_created(fake: FakeEmbedder, tmp_path: Path) -> None:
    cached = Cached(fake, tmp_path / "new" / "folder" / "cache.db")
    cached.embed(["a"])
    cached.close()
    assert (tmp_path / "new" / "folder" / "cache.db").exists()


def test_another_process_holding_the_lock_costs_nothing_but_the_saving(fake: FakeEmbedder, path: Path) -> None:
    cached = Cached(fake, path, memory_bytes=0)
    db = apsw.Connection(str(path))
    db.execute("begin immediate")
    assert cached.embed(["a"]).shape == (1, 64)
    db.execute("rollback")
    cached.embed(["a"])
    cached.embed(["a"])
    assert fake.calls == 2
    db.close()
    cached.close()


def _embed_in_process(path: str, seed: int, answers: multiprocessing.Queue[bool]) -> None:
    cached = Cached(FakeEmbedder(), path, memory_bytes=0)
    texts = [f"{n * 7 % 500}" for n in range(seed, seed + 400)]
    right = FakeEmbedder().embed(texts)
    answers.put(all(np.array_equal(cached.embed(texts[at : at + 40]), right[at : at + 40]) for at in range(0, 400, 40)))
    cached.close()


@pytest.mark.slow
def test_several_processes_create_and_share_one_file(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[bool] = context.Queue()
    processes = [context.Process(target=_embed_in_process, args=(str(path), seed, answers)) for seed in range(3)]
    for process in processes:
        process.start()
    assert [answers.get(timeout=300) for _ in processes] == [True] * 3
    for process in processes:
        process.join()
    assert apsw.Connection(str(path)).execute("select count(*) from vector").get > 300


@pytest.mark.slow
def test_a_process_killed_while_writing_leaves_a_sound_file(path: Path, fake: FakeEmbedder) -> None:
    script = (
        "import itertools, sys\n"
        "from homing.embedders.cached import Cached\n"
        "from homing.testing.fake import FakeEmbedder\n"
        "cached = Cached(FakeEmbedder(), sys.argv[1])\n"
        "for batch in itertools.count():\n"
        "    cached.embed([f'{batch} {n}' for n in range(50)])\n"
        "    print(batch, flush=True)\n"
    )
    with start_python(["-c", script, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 20:
            pass
        process.send_signal(signal.SIGKILL)
    cached = Cached(fake, path)
    cached.embed([f"{batch} {n}" for batch in range(20) for n in range(50)])
    assert fake.calls == 0
    cached.close()
    assert apsw.Connection(str(path)).execute("pragma integrity_check").get == "ok"
