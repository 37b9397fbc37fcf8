"""Web pages of other sites cannot use a server on loopback; answers are dressed so that ours cannot be misused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import homing
from homing.config import ServerSettings, Settings
from homing.server.application import create_app
from homing.server.origin_check import host_of, is_loopback
from tests.server.conftest import LOOPBACK

RECALL = {"query": "灯塔"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "localhost:1", "[::1]:8765", "LOCALHOST", "127.9.9.9"])
def test_names_of_loopback_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", ""]
)
def test_a_name_that_was_made_to_point_here_is_not(client: TestClient, host: str) -> None:
    refused = client.get("/health", headers={"host": host})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_origin_changes_nothing(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/memory/recall", json=RECALL, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers", [{}, {"origin": LOOPBACK}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}]
)
def test_our_own_page_and_programs_do(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/memory/recall", json=RECALL, headers=headers).status_code == 200


def test_answers_to_other_origins_carry_no_permission(client: TestClient) -> None:
    answer = client.get("/health", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    assert client.options("/search", headers=asked).status_code == 405


@pytest.fixture(scope="module")
def open_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    allowed = ServerSettings(cors_origins=("https://app.example",), allowed_hosts=("Homing.lan",))
    path: Path = tmp_path_factory.mktemp("allowed")
    with (
        homing.open(path, settings=Settings(server=allowed)) as app,
        TestClient(create_app(app), base_url=LOOPBACK) as client,
    ):
        yield client


def test_an_origin_that_the_settings_allow_may_call(open_client: TestClient) -> None:
    origin = {"origin": "https://app.example"}
    answer = open_client.post("/memory/recall", json=RECALL, headers=origin)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://app.example")
    # What is wrong is said to its page as well.
    missing = open_client.get("/documents/novel/ch9", headers=origin)
    assert (missing.status_code, missing.headers["access-control-allow-origin"]) == (404, "https://app.example")
    asked = open_client.options("/search", headers={**origin, "access-control-request-method": "POST"})
    assert asked.status_code == 200
    other = open_client.post("/memory/recall", json=RECALL, headers={"origin": "https://evil.example"})
    assert (other.status_code, other.headers.get("access-control-allow-origin")) == (403, None)


def test_a_host_that_the_settings_allow_is_answered(open_client: TestClient) -> None:
    assert open_client.get("/health", headers={"host": "homing.lan:80"}).status_code == 200
    assert open_client.get("/health", headers={"host": "evil.example"}).status_code == 403


def test_every_answer_is_dressed(client: TestClient) -> None:
    for answer in (client.get("/health"), client.get("/nothing"), client.get("/health", headers={"host": "x"})):
        assert "default-src" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    page = client.get("/").headers["content-security-policy"]
    assert "script-src 'self'" in page
    assert "unsafe" not in page


def test_a_request_keeps_the_name_it_came_with_if_that_can_stand_in_a_log(client: TestClient) -> None:
    assert client.get("/health", headers={"x-request-id": "run-7.2"}).headers["x-request-id"] == "run-7.2"
    for given in ("a b", "x" * 200, '{"level":"error"}'):
        assert client.get("/health", headers={"x-request-id": given}).headers["x-request-id"] != given
    names = {client.get("/health").headers["x-request-id"] for _ in range(5)}
    assert len(names) == 5


@pytest.mark.parametrize(
    ("header", "name"), [("a:1", "a"), ("a", "a"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("::1", "::1"), ("", "")]
)
def test_a_host_header_is_read(header: str, name: str) -> None:
    assert host_of(header) == name


@pytest.mark.parametrize(("host", "is_one"), [("::1", True), ("0.0.0.0", False), ("::", False), ("localhost", True)])
def test_loopback_is_this_machine(host: str, is_one: bool) -> None:
    assert is_loopback(host) is is_one
