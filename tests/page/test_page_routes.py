"""What the page needs besides: a file's text, and something to look at."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

import homing
from homing.app import Homing
from homing.config import Settings
from homing.server.application import create_app
from homing.server.tokens import Tokens

pytestmark = pytest.mark.slow


@pytest.fixture
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homing]:
    with homing.open(tmp_path_factory.mktemp("routes") / "data", settings=Settings()) as app:
        yield app


def put_in(client: TestClient) -> dict[str, int]:
    """Add the examples and wait for the job."""
    answer = client.post("/examples")
    assert answer.status_code == 202, answer.text
    job = answer.json()
    while job["state"] in ("waiting", "running"):
        time.sleep(0.05)
        job = client.get(f"/jobs/{job['id']}").json()
    assert job["state"] == "done", job
    result: dict[str, int] = job["result"]
    return result


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_a_text_is_read_whatever_its_encoding(app: Homing, encoding: str) -> None:
    text = "潮水退去以后，码头上只剩下缆绳。" * 4
    with TestClient(create_app(app), base_url="http://127.0.0.1") as client:
        answer = client.post("/files/text", files={"file": ("日记.txt", text.encode(encoding))})
    assert answer.status_code == 200, answer.text
    assert answer.json()["text"].strip() == text


def test_a_picture_is_refused_with_a_code(app: Homing) -> None:
    with TestClient(create_app(app), base_url="http://127.0.0.1") as client:
        answer = client.post("/files/text", files={"file": ("a.png", b"\x89PNG\r\n\x1a\n")})
    assert answer.status_code == 415
    assert answer.json()["error"]["code"]


def test_the_examples_fill_an_empty_folder_and_can_be_put_in_again(app: Homing) -> None:
    with TestClient(create_app(app), base_url="http://127.0.0.1") as client:
        first = put_in(client)
        assert first["documents"] == 6
        assert first["skills"] == 6
        assert put_in(client) == first
        assert client.get("/memory").json()["counts"]["observation"] == 2
        found = client.post("/search", json={"query": "how to sleep better", "sources": ["documents"]}).json()
        assert found["groups"][0]["hits"][0]["metadata"]["document_id"] == "sleep"


def test_a_home_that_is_there_is_not_replaced_by_the_example(app: Homing) -> None:
    with TestClient(create_app(app), base_url="http://127.0.0.1") as client:
        client.put("/devices", json={"devices": [{"id": "mine", "name": "我的灯", "type": "light"}]})
        put_in(client)
        assert [one["id"] for one in client.get("/devices").json()["devices"]] == ["mine"]


def test_who_may_only_write_gets_no_skills_and_who_may_only_read_nothing(app: Homing) -> None:
    tokens = Tokens(app.database)
    reader, writer = tokens.create("mei", "read").secret, tokens.create("mei", "write").secret
    with TestClient(create_app(app, exposed=True), base_url="http://127.0.0.1") as client:
        client.headers["authorization"] = f"Bearer {reader}"
        assert client.post("/examples").status_code == 403
        client.headers["authorization"] = f"Bearer {writer}"
        assert put_in(client)["skills"] == 0
