"""Long work: its progress, its end, how it is stopped and followed."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from homing.app import Homing
from homing.database.sqlite import SqliteDatabase
from homing.errors import Conflict, NotFound, Overloaded, StoreBusy
from homing.server.application import create_app
from homing.server.job import EVENTS_KEPT, Job, JobView, Report
from homing.server.job_log import JobLog, Order
from homing.server.jobs import Jobs
from homing.server.tokens import Tokens
from homing.testing.loopback import LoopbackApi
from tests.forked import run_python
from tests.server.conftest import LOOPBACK
from tests.server.live import live
from tests.skills.folders import write_skill


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with closing(SqliteDatabase(tmp_path / "jobs.db")) as database:
        jobs = Jobs(JobLog(database), workers=1, kept=3, most=4)
        yield jobs
        jobs.close()


def ended(job: Job) -> Job:
    done = threading.Event()
    stop = job.listen(lambda: done.set() if job.ended else None)
    assert job.ended or done.wait(120)
    stop()
    return job


def ended_over(client: TestClient, job: str) -> dict[str, Any]:
    """A job over HTTP, as it is once it has ended."""
    assert client.get(f"/jobs/{job}/events").status_code == 200
    found: dict[str, Any] = client.get(f"/jobs/{job}").json()
    return found


def begin(jobs: Jobs, work: Any, subject: str = "x", *, user: str = "lin", shared: bool = False) -> Job:
    return jobs.submit("test", subject, work, user=user, shared=shared)


def test_a_job_tells_its_progress_and_its_result(jobs: Jobs) -> None:
    def work(report: Report) -> dict[str, int]:
        report(1, 2)
        report(2, 2)
        return {"found": 7}

    job = ended(begin(jobs, work))
    assert (job.view.state, job.view.done, job.view.total, job.view.result) == ("done", 2, 2, {"found": 7})
    numbers = [event.number for event in job.events_after(0)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [event.view.state for event in job.events_after(0)][-1] == "done"
    assert [event.number for event in job.events_after(numbers[-2])] == [numbers[-1]]


def test_a_failure_has_a_code(jobs: Jobs) -> None:
    def busy(report: Report) -> dict[str, int]:
        raise StoreBusy("another process is changing the model")

    def broken(report: Report) -> dict[str, int]:
        raise RuntimeError("a secret detail")

    assert ended(begin(jobs, busy)).view.error == {
        "code": "STORE_BUSY",
        "message": "another process is changing the model",
    }
    error = ended(begin(jobs, broken)).view.error
    assert error is not None
    assert error["code"] == "INTERNAL_ERROR"
    assert "secret" not in error["message"]


def test_a_job_that_runs_stops_at_its_next_sign_of_progress_and_one_that_waits_at_once(jobs: Jobs) -> None:
    running = threading.Event()

    def endless(report: Report) -> dict[str, int]:
        for number in range(100_000):
            report(number, 0)
            running.set()
            time.sleep(0.001)
        return {}

    first, second = begin(jobs, endless, "a"), begin(jobs, endless, "b")
    assert running.wait(120)
    second.cancel()
    assert second.view.state == "cancelled"
    first.cancel()
    assert ended(first).view.state == "cancelled"
    first.cancel()
    assert first.view.state == "cancelled"


@pytest.mark.parametrize("step", range(1, 9))
def test_a_job_that_is_cancelled_as_it_begins_either_runs_or_does_nothing(step: int) -> None:
    job, seen, calls = Job(JobView("1", "test", "x", "lin"), shared=False), [], 0
    cancelling = threading.Thread(target=job.cancel)

    def work(report: Report) -> dict[str, int]:
        seen.append(job.view.state)
        return {}

    def meddle(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call"
        if calls == step:
            sys.setprofile(None)
            cancelling.start()
            cancelling.join(0.1)

    sys.setprofile(meddle)
    job.run(work)
    sys.setprofile(None)
    # Work on a job that is said to have ended would go on beside the next one of its kind.
    assert seen in ([], ["running"])
    assert job.ended


def test_what_is_under_way_is_not_begun_twice_and_not_without_end(jobs: Jobs) -> None:
    release = threading.Event()

    def waiting(report: Report) -> dict[str, int]:
        release.wait(120)
        return {}

    first = begin(jobs, waiting, "a")
    with pytest.raises(Conflict) as refused:
        begin(jobs, waiting, "a")
    assert refused.value.details == {"job": first.view.id}
    # What belongs to another user is another thing, however it is called.
    begin(jobs, waiting, "a", user="wang")
    begin(jobs, waiting, "b")
    begin(jobs, waiting, "c")
    with pytest.raises(Overloaded):
        begin(jobs, waiting, "d")
    release.set()
    for job in jobs.all():
        ended(job)
    # The history is bounded: of those that ended, three are kept.
    last = ended(begin(jobs, waiting, "e"))
    assert jobs.all()[0].view.subject == "e"
    assert len(jobs.all()) == 4
    with pytest.raises(NotFound):
        jobs.get(first.view.id)
    assert jobs.get(last.view.id) is last


def test_one_user_cannot_take_all_places_with_one_kind_of_work(jobs: Jobs) -> None:
    release = threading.Event()

    def waiting(report: Report) -> dict[str, int]:
        release.wait(120)
        return {}

    for name in "ab":
        jobs.submit("upload", name, waiting, user="lin", shared=False, at_once=2)
    with pytest.raises(Overloaded, match="uploads"):
        jobs.submit("upload", "c", waiting, user="lin", shared=False, at_once=2)
    jobs.submit("upload", "c", waiting, user="wang", shared=False, at_once=2)
    release.set()


def test_a_job_is_known_to_the_next_server(data: Homing) -> None:
    data.documents.save("novel", "ch1", "灯塔")
    with TestClient(create_app(data), base_url=LOOPBACK) as earlier:
        job = earlier.post("/documents/novel/reindex").json()["id"]
        told = ended_over(earlier, job)
        assert told["state"] == "done"
    with TestClient(create_app(data), base_url=LOOPBACK) as later:
        assert later.get(f"/jobs/{job}").json() == told
        assert [one["id"] for one in later.get("/jobs").json()["jobs"]] == [job]
        assert later.get("/jobs/0000000000000000").status_code == 404


def test_what_a_server_left_undone_the_next_one_does(data: Homing, tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "git", "---\nname: git-commit\ndescription: 提交\n---\n")
    log = JobLog(data.database)
    scan = JobView("1" * 16, "scan", str(tmp_path / "skills"), "owner")
    log.begin(scan, shared=True, order=Order("scan_skills", json.dumps({"folder": scan.subject}), "admin"))
    log.update(replace(scan, state="running", done=3, total=9), shared=True)
    log.begin(JobView("2" * 16, "upload", "a.txt", "owner"), shared=False, order=None)
    log.release()
    with TestClient(create_app(data), base_url=LOOPBACK) as server:
        done = ended_over(server, scan.id)
        assert (done["state"], done["result"]["indexed"]) == ("done", 1)
        lost = ended_over(server, "2" * 16)
        assert (lost["state"], lost["error"]["code"]) == ("failed", "INTERRUPTED")
        assert server.get("/skills").json()["total"] == 1


def test_the_job_of_a_killed_server_is_taken_up(data: Homing) -> None:
    code = (
        "import os, signal, sys; from homing.database.lazy import LazyDatabase\n"
        "from homing.server.job import JobView\n"
        "from homing.server.job_log import JobLog, Order\n"
        "JobLog(LazyDatabase(sys.argv[1]).open()).begin(\n"
        "    JobView('4' * 16, 'reindex', 'novel', 'owner'), shared=False,\n"
        "    order=Order('reindex_documents', '{\"project\": \"novel\"}', 'write'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    data.documents.save("novel", "ch1", "灯塔")
    assert run_python(["-c", code, str(data.settings.database)]).returncode == -signal.SIGKILL
    with TestClient(create_app(data), base_url=LOOPBACK) as server:
        done = ended_over(server, "4" * 16)
        assert (done["state"], done["result"]["documents"]) == ("done", 1)


def test_a_job_that_another_server_is_at_is_left_to_it(data: Homing) -> None:
    busy = JobLog(data.database)
    busy.begin(JobView("3" * 16, "reindex", "novel", "owner"), shared=False, order=None)
    assert JobLog(data.database).take_over() == []
    busy.release()
    [left] = JobLog(data.database).take_over()
    assert left.fields["id"] == "3" * 16
    busy.update(JobView("3" * 16, "reindex", "novel", "owner", state="done", ended=1.0), shared=False)
    assert [head.state for head in JobLog(data.database).heads(10)] == ["waiting"]


def test_where_one_stretch_of_work_follows_another_both_are_told(jobs: Jobs) -> None:
    def work(report: Report) -> dict[str, int]:
        for done, total in ((1, 600), (2, 600), (600, 600), (0, 48), (1, 48), (48, 48)):
            report(done, total)
        return {}

    told = [(event.view.done, event.view.total) for event in ended(begin(jobs, work)).events_after(2)]
    assert told == [(1, 600), (600, 600), (0, 48), (48, 48), (48, 48)]


def test_events_are_bounded(jobs: Jobs) -> None:
    def chatty(report: Report) -> dict[str, int]:
        for number in range(EVENTS_KEPT * 3):
            report(number, number)
        return {}

    job = ended(begin(jobs, chatty))
    assert len(job.events_after(0)) == EVENTS_KEPT
    assert job.events_after(0)[-1].view.state == "done"


def follow(client: httpx2.Client, path: str, after: int | None = None) -> list[tuple[int, str, dict[str, Any]]]:
    headers = {} if after is None else {"last-event-id": str(after)}
    events = []
    with client.stream("GET", path, headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in stream.iter_lines():
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
                fields = {}
    return events


@pytest.mark.slow
def test_a_scan_is_followed_as_it_happens_and_a_cut_stream_goes_on(data: Homing, tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / "skills" / f"s{number}").mkdir(parents=True)
        text = f"---\nname: s{number}\ndescription: 技能 number {number}\n---\n"
        (tmp_path / "skills" / f"s{number}" / "SKILL.md").write_text(text, encoding="utf-8")
    with live(create_app(data)) as address, httpx2.Client(base_url=address, timeout=120) as client:
        begun = client.post("/skills/scan", json={"folder": str(tmp_path / "skills")})
        assert begun.status_code == 202
        path = f"/jobs/{begun.json()['id']}"
        events = follow(client, f"{path}/events")
        assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
        assert events[-1][1] == "done"
        assert events[-1][2]["result"]["indexed"] == 40
        assert events[-1][2] == client.get(path).json()
        cut = events[len(events) // 2][0]
        assert follow(client, f"{path}/events", after=cut) == events[cut:]
        assert follow(client, f"{path}/events", after=10**6) == []
        assert [job["id"] for job in client.get("/jobs").json()["jobs"]] == [begun.json()["id"]]
        assert client.get("/skills").json()["total"] == 40


@pytest.mark.slow
def test_a_model_is_switched_by_a_job_while_searches_go_on(data: Homing) -> None:
    with LoopbackApi(key="sk-test") as api, live(create_app(data)) as address:
        config = data.models.config
        config.ensure_default_embedding_model()
        config.create_provider("remote", "openai", api_key="sk-test", base_url=api.url + "/v1")
        config.create_model("remote", "text-embedding-3-small", model_config={"dimensions": 256})
        with httpx2.Client(base_url=address, timeout=120) as client:
            for number in range(30):
                client.post("/memory/remember", json={"text": f"记忆 memory {number}"})
            data.engine.flush()
            begun = client.post("/models/default", json={"name": "text-embedding-3-small"})
            assert begun.status_code == 202
            found = client.post("/memory/recall", json={"query": "记忆 7"}).json()
            assert found["hits"]
            assert not found["degraded"]
            events = follow(client, f"/jobs/{begun.json()['id']}/events")
            assert (events[-1][1], events[-1][2]["result"]) == ("done", {"collections": 1})
            switch = client.get("/models/switch").json()
            assert (switch["finished"], switch["default"]) == (True, "openai/text-embedding-3-small@256")
            assert client.get("/models").json()["in_use"] == "openai/text-embedding-3-small@256"
            assert "sk-test" not in client.get("/models").text


def test_jobs_of_the_server_are_seen_by_administrators_and_others_by_their_user(data: Homing) -> None:
    tokens = Tokens(data.database)
    secrets = {name: tokens.create(name, "write").secret for name in ("lin", "wang")}
    secrets["root"] = tokens.create("root", "admin").secret
    headers = {name: {"authorization": f"Bearer {secret}"} for name, secret in secrets.items()}
    with TestClient(create_app(data), base_url=LOOPBACK) as client:
        assert client.put("/documents/novel/ch1", json={"text": "灯塔"}, headers=headers["lin"]).status_code == 200
        mine = client.post("/documents/novel/reindex", headers=headers["lin"]).json()["id"]
        ours = client.post("/skills/scan", json={"folder": str(data.settings.data)}, headers=headers["root"])
        assert ours.status_code == 202
        for name, visible in (("lin", {mine}), ("wang", set()), ("root", {ours.json()["id"]})):
            assert {job["id"] for job in client.get("/jobs", headers=headers[name]).json()["jobs"]} == visible
        assert client.get(f"/jobs/{mine}", headers=headers["wang"]).status_code == 404
        assert client.get(f"/jobs/{mine}/events", headers=headers["root"]).status_code == 404
        assert client.delete(f"/jobs/{mine}", headers=headers["wang"]).status_code == 404
        assert client.delete(f"/jobs/{mine}", headers=headers["lin"]).status_code == 200


def test_reindexing_what_is_not_there_is_not_found(client: TestClient) -> None:
    assert client.post("/documents/nothing/reindex").status_code == 404


@pytest.mark.slow
def test_a_new_model_is_for_every_user(data: Homing) -> None:
    tokens = Tokens(data.database)
    lin, root = ({"authorization": f"Bearer {tokens.create(name, 'admin').secret}"} for name in ("lin", "root"))
    with LoopbackApi(key="sk-test") as api, live(create_app(data)) as address:
        config = data.models.config
        config.ensure_default_embedding_model()
        config.create_provider("remote", "openai", api_key="sk-test", base_url=api.url + "/v1")
        config.create_model("remote", "text-embedding-3-small", model_config={"dimensions": 64})
        with httpx2.Client(base_url=address, timeout=120) as client:
            client.put("/documents/novel/ch1", json={"text": "灯塔。\n\n海。"}, headers=lin)
            while client.get("/documents/novel", headers=lin).json()["documents"][0]["pending"]:
                time.sleep(0.05)
            job = client.post("/models/default", json={"name": "text-embedding-3-small"}, headers=root).json()
            while client.get(f"/jobs/{job['id']}", headers=root).json()["state"] in ("waiting", "running"):
                time.sleep(0.05)
            assert client.get(f"/jobs/{job['id']}", headers=root).json()["result"] == {"collections": 1}
            switch = client.get("/models/switch", headers=lin).json()
            assert (switch["finished"], switch["default"]) == (True, "openai/text-embedding-3-small@64")
            active = [held["model"] for one in switch["collections"] for held in one["models"] if held["served"]]
            assert active == ["openai/text-embedding-3-small@64"]
            found = client.post(
                "/documents/novel/search", json={"query": "灯塔", "min_score": None}, headers=lin
            ).json()
            assert (found["mode"], found["degraded"], found["hits"][0]["text"]) == ("hybrid", False, "灯塔。")


def test_a_server_that_goes_on_takes_up_what_another_left(data: Homing) -> None:
    left, goes_on = JobLog(data.database), Jobs(JobLog(data.database))
    goes_on.resume(lambda order, user: lambda report: {"of": order.content.decode(), "user": user})
    left.begin(JobView("5" * 16, "upload", "a.txt", "lin"), shared=False, order=Order("upload", "a.txt", "write", b"!"))
    seen = goes_on.get("5" * 16)
    assert seen.view.state == "waiting"
    left.release()
    assert ended(seen).view.result == {"of": "!", "user": "lin"}
    goes_on.close()
