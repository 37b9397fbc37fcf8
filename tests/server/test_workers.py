"""Several processes that serve one port and one folder: what one does the others know, and one that dies is missed
by nobody."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import homing
from homing.app import Homing
from homing.config import Settings
from homing.database.sqlite import SqliteDatabase
from homing.errors import Canceled, ConfigError, Conflict, Overloaded, TooManyRequests
from homing.server.job import Report
from homing.server.job_log import JobLog
from homing.server.jobs import Jobs
from homing.server.rate_limit import RateLimit
from homing.server.running import serve_by_workers
from homing.server.shared import Share
from tests.server.process import Serving, serving
from tests.server.test_jobs import ended

RATE = {"HOMING_SERVER__RATE": "0.001", "HOMING_SERVER__BURST": "60"}


@contextmanager
def both(server: Serving) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """A client of each of two workers; each keeps its one connection, and so its worker."""
    with ExitStack() as held:
        found: dict[str, httpx2.Client] = {}
        while len(found) < 2:
            client = held.enter_context(httpx2.Client(base_url=server.address, timeout=120))
            found.setdefault(worker_of(client), client)
        yield found["0"], found["1"]


def served(client: httpx2.Client) -> int:
    """How many requests its worker has answered, but for those that it refused and this one."""
    counts = re.findall(r'homing_requests_total\{.*status="2.*\} (\d+)', client.get("/metrics").text)
    return sum(map(int, counts))


def worker_of(client: httpx2.Client) -> str:
    [number] = set(re.findall(r'worker="(\d)"', client.get("/metrics").text))
    return str(number)


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_job_is_seen_refused_and_cancelled_by_another_server(data: Homing) -> None:
    first, second = (Jobs(JobLog(data.database), most=2) for _ in range(2))
    for jobs in (first, second):
        jobs.resume(lambda order, user: work)
    begun, stopped = threading.Event(), threading.Event()

    def work(report: Report) -> dict[str, int]:
        begun.set()
        while not report.canceled():
            stopped.wait(0.01)
        raise Canceled("stopped")

    job = first.submit("test", "novel", work, user="lin", shared=False)
    assert begun.wait(120)
    assert [one.view.id for one in second.all()] == [job.view.id]
    seen = second.get(job.view.id)
    assert (seen.view.subject, seen.elsewhere, first.get(job.view.id).elsewhere) == ("novel", True, False)
    with pytest.raises(Conflict) as refused:
        second.submit("test", "novel", work, user="lin", shared=False)
    assert refused.value.details == {"job": job.view.id}
    other = second.submit("test", "novel", work, user="mei", shared=False)
    for jobs in (first, second):
        with pytest.raises(Overloaded):
            jobs.submit("test", "third", work, user="mei", shared=False)
    second.cancel(seen)
    first.cancel(other)
    assert {ended(one).view.state for one in (job, other)} == {"cancelled"}
    assert second.get(job.view.id).view.state == "cancelled"
    first.close()
    second.close()


@pytest.mark.slow
def test_one_worker_is_killed_and_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, "--workers", "2", "--log", "none", environ=RATE) as server:
        with both(server) as (first, second):
            texts = {f"note-{number}": client for number, client in enumerate([first, second] * 3)}
            for name, client in texts.items():
                assert client.put(f"/documents/novel/{name}", json={"text": "灯塔。"}).status_code == 200
            job = first.post("/documents/novel/reindex", json={}).json()["id"]
            with second.stream("GET", f"/jobs/{job}/events") as events:
                *_, last = [line for line in events.iter_lines() if line.startswith("event:")]
            assert last == "event: done"
            before = served(first) + served(second) + 2
            told = [client.get("/documents").status_code for client in (first, second) * 30]
            assert before + told.count(200) == 60
            assert told[-2:] == [429, 429]
        were = children(server.process.pid)
        os.kill(were[0], signal.SIGKILL)
        while len(now := children(server.process.pid)) < 2 or were[0] in now:
            time.sleep(0.05)
        assert httpx2.get(f"{server.address}/page/main.js").status_code in (200, 404)
        assert server.stop(signal.SIGTERM) == 0
    with homing.open(data, settings=Settings()) as app:
        assert {one.id for one in app.documents.documents("novel")} == set(texts)
        # Whichever worker took a text, it has its vector: the one that embeds may be another, and may have died.
        assert app.engine.work.waiting() == 0


def test_a_rate_holds_over_all_who_share_a_folder(tmp_path: Path) -> None:
    now = 1.0
    with ExitStack() as held:
        opened = [held.enter_context(closing(SqliteDatabase(tmp_path / "rates.db", durable=False))) for _ in range(2)]
        limits = [RateLimit(database, 1.0, 3, clock=lambda: now) for database in opened]
        for limit in (*limits, limits[0]):
            limit.take("lin")
        for limit in limits:
            limit.take("mei")
            with pytest.raises(TooManyRequests):
                limit.take("lin")


def test_a_limit_is_divided_without_rest_and_a_place_is_taken_once(tmp_path: Path) -> None:
    assert [sum(Share(number, 3).of(limit) for number in range(3)) for limit in (3, 8, 100)] == [3, 8, 100]
    shares = [Share(number, 2, tmp_path) for number in range(2)]
    taken: list[Any] = [share.take("files", 2) for share in shares]
    assert None not in taken
    assert shares[0].take("files", 2) is None
    assert shares[1].take("files of lin", 2) is not None
    taken[0].release()
    assert shares[1].take("files", 2) is not None


def test_each_worker_needs_a_place_of_its_own(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, server={"workers": 4, "concurrent": 3})
    with pytest.raises(ConfigError, match=r"server\.concurrent"):
        serve_by_workers(settings, on_start=print)
