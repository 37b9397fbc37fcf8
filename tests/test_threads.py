"""Threads end: those that were needed once, and those of an app that was closed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

import homing
from homing.config import Settings
from homing.legs import ThreadPool
from homing.server.application import create_app
from homing.testing.fake import FakeEmbedder
from tests.effort import times
from tests.server.live import live


def named(name: str) -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == name]


def gone(name: str) -> None:
    """Waits until there is no such thread."""
    while named(name):
        time.sleep(0.01)


def test_threads_that_nobody_needs_end_and_come_back() -> None:
    pool = ThreadPool("short-lived", 8, idle=0.01)
    for _ in range(2):
        meeting = threading.Barrier(9, timeout=120)
        met = [pool.submit(meeting.wait) for _ in range(8)]
        assert len(named("short-lived")) == 8
        meeting.wait()
        assert len({one.result() for one in met}) == 8
        gone("short-lived")


def test_an_idle_thread_is_used_again_and_one_more_call_than_threads_waits() -> None:
    pool = ThreadPool("used-again", 1, idle=60)
    idents = {pool.submit(threading.get_ident).result() for _ in range(20)}
    gate = threading.Event()
    first, second = pool.submit(gate.wait), pool.submit(threading.get_ident)
    assert not second.done()
    gate.set()
    assert (first.result(), {second.result()}) == (True, idents)
    assert len(named("used-again")) == 1


def test_what_a_call_raises_is_raised_and_its_answer_is_not_kept() -> None:
    pool = ThreadPool("keeps-nothing", 1, idle=60)
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result()

    class Answer:
        pass

    answer = pool.submit(Answer)
    seen = weakref.ref(answer.result())
    del answer
    pool.submit(int).result()
    gc.collect()
    assert seen() is None


def test_a_process_ends_with_its_last_call_and_waits_for_no_idle_thread() -> None:
    code = (
        "import time; from homing.legs import ThreadPool; pool = ThreadPool('x', 2, idle=1e6); "
        "pool.submit(int).result(); pool.submit(lambda: (time.sleep(.2), print('done')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n")


def open_and_close(folder: Path) -> None:
    with homing.open(folder, settings=Settings(), embedder=FakeEmbedder(32)) as app:
        app.documents.upload("# 灯塔\n\nA lighthouse.".encode(), "notes.md")
        app.documents.save("novel", "ch1", "灯塔 lighthouse")
        app.memory.remember("knowledge", "账单 invoices")
        assert app.documents.search("novel", "灯塔")
        assert app.memory.recall("账单")
        assert app.skills.find_relevant_skills("提交") is not None


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
def test_apps_that_were_opened_and_closed_leave_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    open_and_close(tmp_path / "first")
    before = {one for one in threading.enumerate() if one.name != "homing-leg"}, open_descriptors()
    for number in range(times(8, in_full=50)):
        open_and_close(tmp_path / str(number % 3))
    gc.collect()
    after = {one for one in threading.enumerate() if one.name != "homing-leg"}, open_descriptors()
    assert after[0] <= before[0]
    assert after[1] <= before[1]


def test_a_server_that_stopped_leaves_no_thread(tmp_path: Path) -> None:
    import httpx2

    with homing.open(tmp_path, settings=Settings(), embedder=FakeEmbedder(32)) as app:
        app.documents.save("novel", "ch1", "灯塔 lighthouse")
        before = {one for one in threading.enumerate() if one.name != "homing-leg"}
        with live(create_app(app)) as address:
            for _ in range(4):
                assert httpx2.post(f"{address}/search", json={"query": "灯塔"}).is_success
    assert {one for one in threading.enumerate() if one.name != "homing-leg"} <= before
