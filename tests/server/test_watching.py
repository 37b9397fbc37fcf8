"""What who watches the server sees: metrics, health when the model goes down and comes back."""

from __future__ import annotations

import json
import logging
import re
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import homing
from homing.config import Settings
from homing.server.application import create_app
from homing.server.log_lines import JsonLines, ShortLines
from homing.testing.loopback import Fault, LoopbackApi
from tests.server.conftest import LOOPBACK


def metric(client: TestClient, pattern: str) -> float:
    found = re.search(rf"^{pattern} ([0-9.e+-]+)$", client.get("/metrics").text, re.MULTILINE)
    assert found is not None, pattern
    return float(found[1])


def test_requests_and_searches_are_counted_by_pattern_and_not_by_name(client: TestClient) -> None:
    client.post("/documents/novel/search", json={"query": "灯塔"})
    client.get("/documents/novel/ch1")
    client.get("/documents/novel/nothing")
    route = r'homing_requests_total\{method="GET",route="/documents/\{project\}/\{document:name\}",status="%s"\}'
    assert metric(client, route % 200) >= 1
    assert metric(client, route % 404) >= 1
    assert metric(client, r'homing_searches_total\{degraded="false",mode="hybrid",source="documents"\}') >= 1
    assert metric(client, r'homing_request_seconds_count\{method="POST",route="/documents/\{project\}/search"\}') >= 1
    text = client.get("/metrics").text
    assert "ch1" not in text
    assert 'homing_embedding_seconds_count{model="local/all-MiniLM-L6-v2-zh:4@384"}' in text
    assert metric(client, "homing_pending_texts") == 0
    assert metric(client, "homing_dead_letters") == 0


def searches(client: TestClient) -> dict[tuple[str, str], float]:
    """How many searches were counted, by source and mode."""
    counted = r'^homing_searches_total\{degraded="false",mode="(\w+)",source="(\w+)"\} ([0-9.e+-]+)$'
    found = re.findall(counted, client.get("/metrics").text, re.MULTILINE)
    return {(source, mode): float(count) for mode, source, count in found}


@pytest.mark.parametrize(
    ("path", "body", "source", "mode"),
    [
        ("/devices/ask", {"text": "打开主灯"}, "devices", "hybrid"),
        ("/knowledge/search", {"query": "灯塔"}, "knowledge", "hybrid"),
        ("/ipc/embedding:search", {"projectId": "novel", "query": "灯塔"}, "documents", "semantic"),
        ("/ipc/search:fts:query", {"projectId": "novel", "query": "灯塔"}, "documents", "keyword"),
        ("/ipc/rag:retrieve", {"projectId": "novel", "query": "灯塔"}, "documents", "semantic"),
    ],
)
def test_a_search_is_counted_whichever_door_it_came_through(
    client: TestClient, path: str, body: dict[str, str], source: str, mode: str
) -> None:
    before = searches(client)
    assert client.post(path, json=body).status_code == 200
    assert searches(client) == before | {(source, mode): before.get((source, mode), 0) + 1}


@pytest.mark.parametrize(
    ("tool", "arguments", "source"),
    [
        ("find_skills", {"query": "帮我提交代码"}, "skills"),
        ("search_documents", {"query": "loud market"}, "documents"),
        ("recall", {"query": "花生"}, "memory"),
        ("find_devices", {"text": "打开主灯"}, "devices"),
    ],
)
def test_a_search_of_an_agent_is_counted(client: TestClient, tool: str, arguments: dict[str, str], source: str) -> None:
    before = searches(client)
    called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    told = client.post("/mcp", json=called, headers={"Accept": "application/json, text/event-stream"}).text
    answer = json.loads(told.partition("data: ")[2])
    assert not answer["result"].get("isError"), answer
    assert searches(client) == before | {(source, "hybrid"): before.get((source, "hybrid"), 0) + 1}


@pytest.mark.slow
def test_a_dead_model_is_seen_in_answers_health_and_metrics_until_it_is_back(tmp_path: Path) -> None:
    # However busy the machine is, it is the answer that says that the model is dead, and no deadline.
    patient = Settings.model_validate({"search": {"deadline": 600}, "embedding": {"query_deadline": 600}})
    with LoopbackApi(key="sk-test") as api, homing.open(tmp_path, settings=patient) as app:
        config = app.models.config
        config.create_provider("remote", "openai", api_key="sk-test", base_url=api.url + "/v1")
        config.create_model("remote", "text-embedding-3-small", model_config={"dimensions": 64}, is_default=True)
        identity = "openai/text-embedding-3-small@64"
        circuit = rf'homing_circuit\{{model="{identity}",state="%s"\}}'
        with TestClient(create_app(app), base_url=LOOPBACK) as client:
            client.post("/memory/remember", json={"text": "灯塔"})
            app.engine.flush()
            assert client.get("/health").json()["status"] == "ok"
            assert metric(client, circuit % "closed") == 1
            api.always = Fault(status=500, body="{}")
            found = client.post("/memory/recall", json={"query": "灯塔在哪里"}).json()
            assert (found["mode"], found["degraded"]) == ("keyword", True)
            assert found["notice"]["zh"]
            assert [hit["text"] for hit in found["hits"]] == ["灯塔"]
            health = client.get("/health")
            assert (health.status_code, health.json()["status"]) == (200, "degraded")
            assert health.json()["model"]["reason"] == "PROVIDER_UNAVAILABLE"
            assert metric(client, circuit % "closed") == 0
            assert metric(client, rf'homing_embedding_failures_total\{{code="\w+",model="{identity}"\}}') >= 1
            assert metric(client, r'homing_searches_total\{degraded="true",mode="keyword",source="memory"\}') == 1
            refused = client.post("/v1/embeddings", json={"input": "never seen", "model": "default"})
            assert (refused.status_code, int(refused.headers["retry-after"]) >= 1) == (503, True)
            api.always = None
            for _ in range(1_000):
                found = client.post("/memory/recall", json={"query": "灯塔在哪里呢"}).json()
                if not found["degraded"]:
                    break
                time.sleep(0.1)
            assert found["mode"] == "hybrid"
            assert client.get("/health").json()["status"] == "ok"


def test_a_server_whose_model_has_no_key_remembers_and_answers_by_words(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {
            "embedding": {"provider_id": "x", "model": "text-embedding-3-small"},
            "providers": {"x": {"type": "openai", "api_key": "${HOMING_TEST_NOT_SET}"}},
        }
    )
    with (
        homing.open(tmp_path, settings=settings) as app,
        TestClient(create_app(app), base_url=LOOPBACK) as client,
    ):
        entry = client.post("/memory/remember", json={"text": "灯塔"}).json()
        found = client.post("/memory/recall", json={"query": "灯塔"}).json()
        assert [hit["id"] for hit in found["hits"]] == [entry["id"]]
        assert (found["degraded"], found["reason"]) == (True, "vector:MODEL_NOT_READY")
        assert client.get("/memory").json()["waiting"] == 1
        assert client.get("/health").json()["status"] == "degraded"
        assert client.delete(f"/memory/{entry['id']}").json() == {"forgotten": 1}


def test_a_store_that_cannot_be_read_is_a_503(tmp_path: Path) -> None:
    with (
        homing.open(tmp_path, settings=Settings()) as app,
        TestClient(create_app(app), base_url=LOOPBACK) as client,
    ):
        app.database.close()
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "failing")
        refused = client.get("/memory")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "STORE_CLOSED")


def test_lines_are_short_on_a_terminal() -> None:
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "request"})
    record.__dict__.update(method="GET", path="/health", route="/health", status=200, ms=1.5, user="owner")
    assert ShortLines().format(record).endswith("200 GET /health  1.5 ms")
    record.__dict__["path"] = "/documents/a\n12:00:00  200 GET /forged"
    assert "\n" not in ShortLines().format(record)
    warning = logging.makeLogRecord({"name": "x", "levelname": "WARNING", "msg": "灯塔 %s", "args": ("1",)})
    assert ShortLines().format(warning).endswith("warning: 灯塔 1")
    forged = logging.LogRecord(
        "homing", logging.WARNING, "", 0, "giving up on %s", ("a\n12:00:00  200 \x1b[31m",), None
    )
    assert ShortLines().format(forged).endswith("warning: giving up on a�12:00:00  200 �[31m")
    assert '"message": "灯塔 1"' in JsonLines().format(warning)


def test_a_trace_is_part_of_the_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        record = logging.makeLogRecord({"msg": "x", "exc_info": (ValueError, error, error.__traceback__)})
    assert "ValueError: broken" in JsonLines().format(record)
    assert "\n" not in JsonLines().format(record)
    assert "ValueError: broken" in ShortLines().format(record)
