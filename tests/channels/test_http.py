"""The channels over HTTP: the same envelope, a status that fits, and tokens that reach as far as they should."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

import homing
from homing.app import Homing
from homing.channels import CHANNELS, Channels, schemas
from homing.config import EmbeddingSettings, ProviderSettings, Settings
from homing.server.application import create_app
from homing.server.tokens import Tokens
from homing.testing.loopback import Fault, LoopbackApi
from tests.channels.invoking import AFRAID, NOVEL, ask, save
from tests.channels.unembedded import PARAGRAPHS, not_yet_embedded
from tests.server.live import live
from tests.server.process import serving

LOOPBACK = "http://127.0.0.1"
KEYWORDS_ONLY = Settings(embedding=EmbeddingSettings(provider=""))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    with homing.open(tmp_path_factory.mktemp("ipc") / "data", settings=Settings()) as app:
        save(Channels(app), "novel", "ch1", NOVEL)
        yield app


@pytest.fixture(scope="module")
def client(app: Homing) -> Iterator[TestClient]:
    with TestClient(create_app(app), base_url=LOOPBACK) as client:
        yield client


@pytest.mark.parametrize("query", ["沈舟怕什么", "who is afraid of water", "沈舟 afraid of 水"])
def test_the_envelope_is_that_of_every_transport(app: Homing, client: TestClient, query: str) -> None:
    payload = {"projectId": "novel", "query": query}
    answer = client.post("/ipc/embedding:search", json=payload)
    assert (answer.status_code, answer.json()["ok"]) == (200, True)
    results = answer.json()["data"]["results"]
    assert results == ask(Channels(app), "embedding:search", **payload)["results"]
    assert results[0]["text"] == AFRAID


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_description_has_an_example_that_is_taken(client: TestClient, channel: str) -> None:
    described = client.get("/openapi.json").json()["paths"][f"/ipc/{channel}"]["post"]
    example = described["requestBody"]["content"]["application/json"]["example"]
    CHANNELS[channel].request.model_validate(example)


def test_a_channel_without_fields_takes_an_empty_body(client: TestClient) -> None:
    for body in (b"", b"  ", b"{}"):
        assert client.post("/ipc/rag:config:get", content=body).json()["data"]["topK"] == 5


def test_half_a_surrogate_pair_goes_in_and_comes_out(client: TestClient) -> None:
    body = b'{"projectId": "half", "documentId": "d", "text": "a \\ud83d b"}'
    assert client.post("/ipc/document:save", content=body).status_code == 200
    answer = client.post("/ipc/document:text", json={"projectId": "half", "documentId": "d"})
    assert answer.json() == {"ok": True, "data": {"text": "a \ud83d b"}}


@pytest.mark.parametrize(
    ("channel", "body", "status", "code"),
    [
        ("embedding:search", b'{"projectId": "novel"}', 400, "INVALID_ARGUMENT"),
        ("embedding:search", b'{"projectId": "novel", "query": "q", "top_k": 1}', 400, "INVALID_ARGUMENT"),
        ("embedding:search", b"[1]", 400, "INVALID_ARGUMENT"),
        ("embedding:search", b"{", 400, "INVALID_ARGUMENT"),
        ("embedding:search", b"\xff", 400, "INVALID_ARGUMENT"),
        ("embedding:search", b"[" * 100_000, 400, "INVALID_ARGUMENT"),
        ("embedding:generate", b'{"texts": ["a"], "dimensions": 5}', 400, "EMBEDDING_DIMENSION_MISMATCH"),
        ("embedding:generate", b'{"texts": ["a"], "model": "none"}', 404, "NOT_FOUND"),
        ("document:text", b'{"projectId": "novel", "documentId": "none"}', 404, "NOT_FOUND"),
        ("no:such:channel", b"{}", 404, "NOT_FOUND"),
        ("a/b", b"{}", 404, "NOT_FOUND"),
    ],
)
def test_an_error_has_its_envelope_and_its_status(
    client: TestClient, channel: str, body: bytes, status: int, code: str
) -> None:
    answer = client.post(f"/ipc/{channel}", content=body)
    assert (answer.status_code, answer.json()["ok"], answer.json()["error"]["code"]) == (status, False, code)


def test_a_model_that_is_not_there_may_be_asked_again_later(tmp_path: Path) -> None:
    with (
        homing.open(tmp_path / "data", settings=KEYWORDS_ONLY) as app,
        TestClient(create_app(app), base_url=LOOPBACK) as client,
    ):
        answer = client.post("/ipc/embedding:generate", json={"texts": ["灯塔"]})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "MODEL_NOT_READY")
        assert answer.headers["retry-after"] == "1"


def test_the_channels_are_described(client: TestClient) -> None:
    assert client.get("/ipc").json() == schemas()
    paths = client.get("/openapi.json").json()["paths"]
    for name in CHANNELS:
        operation = paths[f"/ipc/{name}"]["post"]
        taken = operation["requestBody"]["content"]["application/json"]["schema"]
        assert taken["additionalProperties"] is False
        assert {"200", "400", "404", "500", "503"} <= set(operation["responses"])


def test_a_token_reaches_as_far_as_it_says_and_users_are_apart(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", settings=KEYWORDS_ONLY) as app:
        tokens = Tokens(app.database)
        secrets = {
            ("ann", "write"): tokens.create("ann", "write").secret,
            ("ann", "read"): tokens.create("ann", "read").secret,
            ("bob", "read"): tokens.create("bob", "read").secret,
        }
        with TestClient(create_app(app), base_url=LOOPBACK) as client:

            def post(channel: str, who: tuple[str, str], **payload: Any) -> tuple[int, dict[str, Any]]:
                headers = {"authorization": f"Bearer {secrets[who]}"}
                answer = client.post(f"/ipc/{channel}", json=payload, headers=headers)
                return answer.status_code, answer.json()

            document = {"projectId": "p", "documentId": "d", "text": "灯塔 lighthouse"}
            assert post("document:save", ("ann", "write"), **document)[0] == 200
            status, envelope = post("document:save", ("ann", "read"), **document)
            assert (status, envelope["ok"], envelope["error"]["code"]) == (403, False, "FORBIDDEN")
            for channel, one in CHANNELS.items():
                if one.writes:
                    assert post(channel, ("ann", "read"))[0] == 403
            assert (
                len(post("search:fts:query", ("ann", "read"), projectId="p", query="灯塔")[1]["data"]["results"]) == 1
            )
            assert post("search:fts:query", ("bob", "read"), projectId="p", query="灯塔")[1]["data"]["results"] == []
            assert client.post("/ipc/project:list", json={}).status_code == 401


@pytest.mark.slow
def test_a_client_that_hangs_up_takes_its_reindex_back(tmp_path: Path) -> None:
    with LoopbackApi(key="k") as api:
        there = ProviderSettings.model_validate({"type": "openai", "api_key": "k", "base_url": f"{api.url}/v1"})
        embedding = EmbeddingSettings(provider_id="there", model="text-embedding-3-small", dimensions=64)
        text = "\n\n".join(f"第{number}段：灯塔亮了一整夜，一直亮到天明。" for number in range(1200))
        with homing.open(tmp_path / "data", settings=KEYWORDS_ONLY) as app:
            ask(Channels(app), "document:save", projectId="p", documentId="d", text=text)
        settings = Settings(embedding=embedding, providers={"there": there})
        with homing.open(tmp_path / "data", settings=settings) as app, live(create_app(app)) as address:
            api.always = Fault(delay=0.4)
            body = b'{"batchSize": 1}'
            with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as connection:
                connection.sendall(
                    b"POST /ipc/embedding:reindex HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
                )
                while not one_by_one(api):
                    time.sleep(0.01)
            # The background, which takes more at a time, goes on: there is something left to do.
            seen = 0
            while seen < one_by_one(api):
                seen = one_by_one(api)
                time.sleep(1.2)
            assert ask(Channels(app), "embedding:status")["pending"] > 0
            api.always = None


@pytest.mark.slow
def test_a_reindex_is_a_job_that_the_next_server_goes_on_with(tmp_path: Path, api: LoopbackApi) -> None:
    data = not_yet_embedded(tmp_path, api)
    api.always = Fault(delay=0.5)
    asked = {"projectId": "novel", "batchSize": 1}
    with serving(data) as server, ThreadPoolExecutor(1) as pool:
        reindex = f"{server.address}/ipc/embedding:reindex"
        answering = pool.submit(httpx2.post, reindex, json=asked, timeout=300)
        jobs: list[dict[str, Any]] = []
        while not (jobs and jobs[0]["state"] == "running"):
            jobs = httpx2.get(f"{server.address}/jobs", timeout=300).json()["jobs"]
        [job] = jobs
        assert (job["kind"], job["subject"]) == ("reindex", "novel")
        again = httpx2.post(reindex, json=asked, timeout=300)
        assert (again.status_code, again.json()["error"]["code"]) == (409, "CONFLICT")
        assert server.stop(signal.SIGTERM) == 0
        answer = answering.result()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "OVERLOADED")
        assert job["id"] in answer.json()["error"]["message"]
    api.always = None
    with serving(data) as server:
        assert httpx2.get(f"{server.address}/jobs/{job['id']}/events", timeout=300).status_code == 200
        done = httpx2.get(f"{server.address}/jobs/{job['id']}", timeout=300).json()
    assert (done["state"], done["result"]["chunks"], done["result"]["waiting"]) == ("done", PARAGRAPHS, 0)


def one_by_one(api: LoopbackApi) -> int:
    """How many requests had a single text in them."""
    return sum(len(request.body["input"]) == 1 for request in list(api.requests))
