"""Files of strangers at a server: they cost their sender, and nobody else."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

import homing
from homing.app import Homing
from homing.config import FileSettings, Settings
from homing.server.application import create_app
from homing.server.tokens import Tokens
from tests.files.bombs import same_page_thousands_of_times
from tests.files.made_files import make_docx, with_member
from tests.files.test_bombs import readers
from tests.server.live import live

pytestmark = pytest.mark.slow

BOMB = same_page_thousands_of_times()
LARGE_BOMB = BOMB + b"\n%" + b"x" * 300_000


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Homing, str, Callable[[str], httpx2.Client]]]:
    settings = Settings(files=FileSettings(seconds=600, cpu_seconds=600, at_once=2, per_user=1))
    with homing.open(tmp_path / "data", settings=settings) as app:
        secrets = {user: Tokens(app.database).create(user, "write").secret for user in ("mallory", "lin")}
        clients = []
        with live(create_app(app)) as address:

            def client(user: str) -> httpx2.Client:
                headers = {"authorization": f"Bearer {secrets[user]}"}
                clients.append(httpx2.Client(base_url=address, headers=headers, timeout=120))
                return clients[-1]

            yield app, address, client
            for one in clients:
                one.close()


def until(happened: Callable[[], bool]) -> None:
    while not happened():
        time.sleep(0.02)


def test_one_users_bombs_leave_the_others_served_and_end_when_their_sender_goes(
    served: tuple[Homing, str, Callable[[str], httpx2.Client]],
) -> None:
    _, _, client = served
    mallory, lin = client("mallory"), client("lin")
    request = mallory.build_request("POST", "/files/text", files={"file": ("a.pdf", BOMB)})
    senders = [socket.create_connection((request.url.host, request.url.port)) for _ in range(3)]
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    for one in senders:
        one.sendall(f"POST /files/text HTTP/1.1\r\n{head}\r\n".encode() + request.read())
    until(lambda: len(readers()) == 1)
    read = lin.post("/files/text", files={"file": ("b.docx", make_docx("灯塔 lamp"))})
    assert (read.status_code, read.json()["text"]) == (200, "灯塔 lamp")
    kept = lin.post("/knowledge/upload", files={"file": ("c.docx", make_docx("灯塔 lamp"))})
    assert kept.status_code == 200
    assert lin.post("/knowledge/search", json={"query": "灯塔"}).json()["hits"]
    assert len(readers()) == 1
    for one in senders:
        one.close()
    until(lambda: not readers())


def test_a_job_that_is_cancelled_kills_its_reader_and_the_next_one_has_its_turn(
    served: tuple[Homing, str, Callable[[str], httpx2.Client]],
) -> None:
    _, _, client = served
    mallory, lin = client("mallory"), client("lin")
    jobs = [mallory.post("/knowledge/upload", files={"file": (f"{n}.pdf", LARGE_BOMB)}).json()["id"] for n in range(2)]
    until(lambda: len(readers()) == 1)
    padded = with_member(make_docx("灯塔 lamp"), "word/media/picture.bin", random.Random(1).randbytes(300_000))
    theirs = lin.post("/knowledge/upload", files={"file": ("b.docx", padded)}).json()["id"]
    until(lambda: lin.get(f"/jobs/{theirs}").json()["state"] in ("done", "failed"))
    assert lin.get(f"/jobs/{theirs}").json()["state"] == "done"
    assert [mallory.get(f"/jobs/{one}").json()["state"] for one in jobs] == ["running", "waiting"]
    for one in jobs:
        mallory.delete(f"/jobs/{one}")
    until(lambda: not readers())


def test_a_server_that_stops_kills_its_readers(tmp_path: Path) -> None:
    settings = Settings(files=FileSettings(seconds=600, cpu_seconds=600))
    with homing.open(tmp_path / "data", settings=settings) as app:
        served = create_app(app)
        with live(served) as address, httpx2.Client(base_url=address, timeout=120) as client:
            sending = threading.Thread(
                target=lambda: client.post("/files/text", files={"file": ("a.pdf", BOMB)}), daemon=True
            )
            sending.start()
            client.post("/knowledge/upload", files={"file": ("b.pdf", LARGE_BOMB)})
            until(lambda: len(readers()) == 2)
            served.state.service.stopping.set()
            sending.join()
            assert len(readers()) == 1
        assert not readers()
