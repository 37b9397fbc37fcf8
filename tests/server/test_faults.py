"""No fault of a model costs a client of the server a text, an answer by words, or a request that fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from homing.server.application import create_app
from tests.faults import OF_EACH_KIND, Faulty, faulty, warnings
from tests.server.contents import HOME

LOOPBACK = "http://127.0.0.1"
UNAVAILABLE = ("degraded", "unavailable")
STORY = "他一个人守着灯塔，三十年没有和人说话。"


@pytest.fixture(params=OF_EACH_KIND)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Faulty]:
    with faulty(tmp_path, request.param) as model:
        yield model


@pytest.fixture
def client(model: Faulty, tmp_path: Path) -> Iterator[TestClient]:
    with (
        model.open(tmp_path / "data") as app,
        TestClient(create_app(app), base_url=LOOPBACK, raise_server_exceptions=False) as client,
    ):
        yield client
        model.release()


def test_everything_is_kept_listed_found_by_words_and_deleted(
    model: Faulty, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    def ask(method: str, path: str, **body: Any) -> Any:
        answer = client.request(method, path, json=body or None)
        assert answer.status_code < 300, (path, answer.text)
        assert "Traceback" not in answer.text
        return answer.json()

    def assert_by_words(group: dict[str, Any], text: str) -> None:
        assert [hit["text"] for hit in group["hits"]] == [text]
        assert (group["mode"], group["degraded"]) == ("keyword", True)
        assert model.is_reason(group["reason"]), group["reason"]
        assert group["notice"]["zh"]
        assert group["notice"]["en"]

    assert len(ask("PUT", "/documents/novel/ch1", text=STORY)["changed"]) == 1
    entry = ask("POST", "/memory/remember", text="灯塔的钥匙在抽屉里")
    assert entry.pop("embedded") is False
    assert ask("PUT", "/devices", **HOME)["added"]
    assert [one["id"] for one in ask("GET", "/documents")["projects"]] == ["novel"]
    assert ask("GET", "/documents/novel/ch1")["text"] == STORY
    assert [one["text"] for one in ask("GET", "/documents/novel/ch1/chunks")["chunks"]] == [STORY]
    assert ask("GET", "/memory")["entries"] == [entry]
    said = len(warnings(caplog.records))
    for mode in ("semantic", "hybrid"):
        assert_by_words(ask("POST", "/documents/novel/search", query="灯塔", mode=mode), STORY)
        assert_by_words(ask("POST", "/memory/recall", query="灯塔", mode=mode), entry["text"])
    assert len(warnings(caplog.records)) == said + 4
    assert not ask("POST", "/documents/novel/search", query="灯塔", mode="keyword")["degraded"]
    groups = ask("POST", "/search", query="灯塔", sources=["documents", "memory"])["groups"]
    for group, text in zip(groups, (STORY, entry["text"]), strict=True):
        assert_by_words(group, text)
    [lamps] = ask("POST", "/search", query="打开卧室的灯", sources=["devices"])["groups"]
    assert lamps["hits"][0]["text"] == "卧室 · 主灯"
    assert lamps["degraded"]
    assert lamps["notice"] is not None
    assert ask("POST", "/devices/ask", text="打开卧室的灯")["decision"] == "act"
    map_ = ask("POST", "/map", source="all", query="灯塔")
    assert map_["points"] == []
    assert ask("GET", "/models")["fixed"]
    assert ask("GET", "/v1/models")["object"] == "list"
    health = client.get("/health")
    assert (health.status_code, health.json()["store"]["state"]) == (200, "ok")
    # That a model is slow shows only when it was asked for longer than a search waits.
    assert model.fault == "slow" or (health.json()["status"], health.json()["model"]["state"]) == UNAVAILABLE
    assert client.get("/doctor").status_code == 200
    assert client.get("/metrics").status_code == 200
    assert ask("DELETE", "/documents/novel/ch1") == {"deleted": 1}
    assert ask("DELETE", f"/memory/{entry['id']}") == {"forgotten": 1}
    assert ask("GET", "/memory")["entries"] == []
