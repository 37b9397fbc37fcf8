"""What one caller, and all of them together, may ask for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient

import homing
from homing.app import Homing
from homing.config import ServerSettings, Settings
from homing.embedders.provider import Kind
from homing.engine import Engine
from homing.errors import TooManyRequests
from homing.server.application import create_app
from homing.server.rate_limit import RateLimit
from homing.server.tokens import Tokens
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix
from tests.server.conftest import LOOPBACK
from tests.server.live import live


class Gated(FakeEmbedder):
    """A model that answers questions when it is let."""

    gate = threading.Event()

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        if kind == "query":
            self.gate.wait(600)
        return super().embed(texts, kind=kind)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that takes little."""
    limits = ServerSettings(max_body=4096, concurrent=2, waiting=2, patience=0.3)
    data = tmp_path_factory.mktemp("limited")
    with homing.open(data, settings=Settings(server=limits)) as app:
        app.engine = Engine(app.store, Gated())
        app.memory.remember("knowledge", "灯塔")
        with live(create_app(app)) as address:
            yield address


def test_a_body_that_says_it_is_too_large_is_not_even_read(address: str) -> None:
    answer = httpx2.post(f"{address}/memory/remember", json={"text": "灯" * 5000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "BODY_TOO_LARGE")
    assert answer.json()["error"]["details"] == {"most": 4096}


def test_a_body_in_pieces_is_counted_as_it_comes(address: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(100):
            yield b"x" * 100
        yield b'"}'

    answer = httpx2.post(f"{address}/memory/remember", content=pieces(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "BODY_TOO_LARGE")


def test_a_body_in_pieces_that_fits_is_taken(address: str) -> None:
    pieces = iter([b'{"text": ', '"灯塔"'.encode(), b"}"])
    answer = httpx2.post(f"{address}/memory/remember", content=pieces, headers={"content-type": "application/json"})
    assert answer.status_code == 201


def test_beyond_the_queue_callers_are_told_to_come_back_and_the_rest_is_served(address: str) -> None:
    with ThreadPoolExecutor(12) as pool, httpx2.Client(timeout=120) as client:
        asked = [pool.submit(client.post, f"{address}/memory/recall", json={"query": "灯塔"}) for _ in range(12)]
        # Who watches the server is answered all the while.
        assert client.get(f"{address}/health").status_code == 200
        # Two are being served and ask the model; it answers when all others were turned away.
        turned_away = as_completed(asked)
        for _ in range(10):
            next(turned_away)
        Gated.gate.set()
        answers = [one.result() for one in asked]
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(200) == 2
    assert statuses.count(503) == 10
    for answer in answers:
        if answer.status_code == 503:
            assert answer.json()["error"]["code"] == "OVERLOADED"
            assert int(answer.headers["retry-after"]) >= 1
    assert httpx2.post(f"{address}/memory/recall", json={"query": "灯塔"}).status_code == 200


@pytest.mark.slow
def test_fifty_clients_at_once_are_all_served(app: Homing) -> None:
    with live(create_app(app)) as address, ThreadPoolExecutor(50) as pool, httpx2.Client(timeout=120) as client:
        asked = [
            pool.submit(client.post, f"{address}/search", json={"query": f"灯塔 {number}"}) for number in range(150)
        ]
        assert {one.result().status_code for one in asked} == {200}


def test_who_asks_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    # Nothing comes back while the test runs, however long that takes.
    limits = ServerSettings(rate=0.001, burst=3)
    with homing.open(tmp_path, settings=Settings(server=limits)) as app:
        tokens = Tokens(app.database)
        first, second = tokens.create("lin", "read"), tokens.create("wang", "read")
        with TestClient(create_app(app), base_url=LOOPBACK) as client:
            headers = {"authorization": f"Bearer {first.secret}"}
            statuses = [client.get("/jobs", headers=headers).status_code for _ in range(4)]
            assert statuses == [200, 200, 200, 429]
            refused = client.get("/jobs", headers=headers)
            assert refused.json()["error"]["code"] == "TOO_MANY_REQUESTS"
            assert 1 <= int(refused.headers["retry-after"]) <= 1_000
            # Another token has its own allowance, and so have those that guess.
            assert client.get("/jobs", headers={"authorization": f"Bearer {second.secret}"}).status_code == 200
            guesses = [client.get("/jobs", headers={"authorization": "Bearer hmg_x_y"}).status_code for _ in range(4)]
            assert guesses == [401, 401, 401, 429]
            # The page comes in many files.
            assert {client.get("/").status_code for _ in range(10)} == {200}


def test_the_allowance_fills_again(data: Homing) -> None:
    now = 0.0
    limit = RateLimit(data.database, 2.0, 2, clock=lambda: now)
    limit.take("a")
    limit.take("a")
    with pytest.raises(TooManyRequests) as refused:
        limit.take("a")
    assert refused.value.retry_after == pytest.approx(0.5)
    limit.take("b")
    now = 0.5
    limit.take("a")
    now = 1000.0
    limit.take("a")
    limit.take("a")
    with pytest.raises(TooManyRequests):
        limit.take("a")
