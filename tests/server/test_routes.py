"""What people ask of the server, and what it answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from homing.app import Homing
from homing.errors_zh import in_chinese
from homing.server.application import create_app


def test_health_tells_the_model_and_the_store(client: TestClient) -> None:
    told = client.get("/health").json()
    assert told["status"] == "ok"
    assert told["model"] == {"state": "ok", "id": "local/all-MiniLM-L6-v2-zh:4@384", "reason": None}
    assert told["store"]["state"] == "ok"


@pytest.mark.parametrize(
    ("query", "source", "expected"),
    [
        ("谁三十年不说话", "documents", "他一个人守着灯塔"),
        ("灯塔", "documents", "他一个人守着灯塔"),
        ("燈塔", "documents", "他一个人守着灯塔"),
        ("a loud market 市场", "documents", "The market was loud"),
        ("what food is the user allergic to", "memory", "用户不吃辣"),
        ("when are invoices sent", "memory", "Invoices are sent"),
        ("帮我提交代码", "skills", "生成Git提交信息"),
        ("打开卧室的灯", "devices", "卧室 · 主灯"),
    ],
)
def test_one_box_finds_it_in_its_source(client: TestClient, query: str, source: str, expected: str) -> None:
    answer = client.post("/search", json={"query": query})
    assert answer.status_code == 200
    groups = {group["source"]: group for group in answer.json()["groups"]}
    assert list(groups) == ["skills", "documents", "memory", "devices"]
    assert groups[source]["hits"][0]["text"].startswith(expected)
    assert not groups[source]["degraded"]


def test_a_hit_explains_itself(client: TestClient) -> None:
    body = {"query": "灯塔", "sources": ["documents"], "project": "novel"}
    [group] = client.post("/search", json=body).json()["groups"]
    hit = group["hits"][0]
    assert hit["matched"] == ["灯塔"]
    assert [hit["text"][start:end] for start, end in hit["spans"]] == ["灯塔"]
    assert [leg["leg"] for leg in hit["legs"]] == ["vector", "keyword"]
    assert sum(leg["share"] for leg in hit["legs"]) == pytest.approx(hit["fused"])
    assert hit["metadata"]["document_id"] == "ch1"


def test_what_shares_neither_meaning_nor_words_is_no_answer(client: TestClient) -> None:
    groups = client.post("/search", json={"query": "量子纠缠", "sources": ["memory", "skills"]}).json()["groups"]
    assert [group["hits"] for group in groups] == [[], []]


def test_skills_are_listed_found_and_read(client: TestClient) -> None:
    assert client.get("/skills").json()["total"] == 3
    assert len(client.get("/skills", params={"limit": 1, "offset": 1}).json()["skills"]) == 1
    found = client.post("/skills/search", json={"query": "帮我提交代码", "limit": 1}).json()
    assert found["hits"][0]["metadata"]["name"] == "git-commit"
    by_name = client.get("/skills/git-commit").json()
    assert by_name["body"] == "Use it well.\n"
    assert client.get(f"/skills/{by_name['id']}").json() == by_name
    assert client.get("/skills/nothing").json()["error"]["code"] == "NOT_FOUND"


def test_a_document_is_saved_read_searched_and_deleted(client: TestClient, app: Homing) -> None:
    path = "/documents/notes/部分/第一章 🌙.md"
    saved = client.put(path, json={"text": "第一段。\n\n第二段。"}).json()
    assert len(saved["changed"]) == 2
    again = client.put(path, json={"text": "第一段。\n\n第二段改了。"}).json()
    assert (len(again["changed"]), len(again["unchanged"])) == (1, 1)
    assert client.get(path).json()["text"] == "第一段。\n\n第二段改了。"
    chunks = client.get(f"{path}/chunks").json()["chunks"]
    assert [one["text"] for one in chunks] == ["第一段。", "第二段改了。"]
    app.documents.flush()
    found = client.post("/documents/notes/search", json={"query": "第二段", "mode": "keyword"}).json()
    assert found["hits"][0]["metadata"]["document_id"] == "部分/第一章 🌙.md"
    assert {one["id"] for one in client.get("/documents").json()["projects"]} == {"novel", "notes"}
    assert client.delete(path).json() == {"deleted": 1}
    assert client.get(path).status_code == 404
    assert client.delete(path).status_code == 404


def test_a_path_means_one_thing(client: TestClient) -> None:
    refused = client.put("/documents/novel/ch1/chunks", json={"text": "x"})
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
    assert client.get("/skills/search").headers["allow"] == "POST"


def test_memory_is_kept_listed_and_forgotten(client: TestClient) -> None:
    made = client.post(
        "/memory/remember", json={"text": "会议改到周五", "collection": "observation", "session_key": "s1"}
    )
    assert made.status_code == 201
    entry = made.json()
    listed = client.get("/memory", params={"collection": "observation", "session_key": "s1"}).json()
    assert [one["id"] for one in listed["entries"]] == [entry["id"]]
    assert client.get("/memory").json()["entries"][0]["id"] == entry["id"]
    found = client.post("/memory/recall", json={"query": "会议", "session_key": "s1", "mode": "keyword"}).json()
    assert [hit["id"] for hit in found["hits"]] in ([entry["id"]], [])
    assert client.delete(f"/memory/{entry['id']}").json() == {"forgotten": 1}
    assert client.delete(f"/memory/{entry['id']}").status_code == 404


def test_a_sentence_resolves_and_a_question_is_answered_in_the_next(client: TestClient) -> None:
    acted = client.post("/devices/ask", json={"text": "打开除卧室以外的灯"}).json()
    assert (acted["decision"], acted["devices"]) == ("act", ["strip"])
    assert acted["steps"][0]["candidates"][0]["command"] == "turn_on"
    assert acted["state"]["last"] == ["strip"]
    then = client.post("/devices/ask", json={"text": "关掉它", "state": acted["state"]}).json()
    assert (then["decision"], then["devices"]) == ("act", ["strip"])
    asked = client.post("/devices/ask", json={"text": "打开阳台的灯"}).json()
    assert (asked["decision"], asked["steps"][0]["hint"]) == ("ask", "unknown_room")


def test_a_home_is_replaced_and_kept(data: Homing) -> None:
    home = {"devices": [{"id": "a", "name": "台灯", "type": "light", "room": "书房"}], "rooms": [{"name": "书房"}]}
    with TestClient(create_app(data), base_url="http://127.0.0.1") as client:
        assert client.put("/devices", json=home).json()["added"] == ["a"]
        assert client.put("/devices", json=home).json()["unchanged"] == ["a"]
        assert client.get("/devices").json()["devices"][0]["commands"]
        assert client.post("/devices/ask", json={"text": "打开书房的灯"}).json()["devices"] == ["a"]
        assert client.put("/devices", json={"devices": []}).json()["removed"] == ["a"]
        assert client.get("/devices").json() == {"devices": [], "rooms": []}


@pytest.mark.parametrize("home", ["examples/home/loft.json", "src/homing/examples/home.json"])
def test_a_home_may_have_any_form_that_a_file_has(data: Homing, home: str) -> None:
    content = json.loads((Path(__file__).parents[2] / home).read_text(encoding="utf-8"))
    with TestClient(create_app(data), base_url="http://127.0.0.1") as client:
        listed = [one["id"] for one in (*content["devices"], *content.get("groups", ()))]
        assert client.put("/devices", json=content).json()["added"] == listed


@pytest.mark.parametrize(
    "home", [{"nothing": 1}, {"devices": 5}, {"devices": ["x"]}, {"devices": [{"name": "灯"}]}, {"items": {"a": 1}}]
)
def test_what_is_no_home_is_refused_and_the_one_that_is_there_stays(
    client: TestClient, home: dict[str, object]
) -> None:
    before = client.get("/devices").json()
    refused = client.put("/devices", json=home)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_ARGUMENT")
    assert client.get("/devices").json() == before


def test_models_and_doctor_tell_how_things_stand(client: TestClient) -> None:
    models = client.get("/models").json()
    assert (models["in_use"], models["fixed"]) == ("local/all-MiniLM-L6-v2-zh:4@384", False)
    assert models["models"][0]["default"]
    switch = client.get("/models/switch").json()
    assert (switch["finished"], switch["running"]) == (True, False)
    assert {one["collection"] for one in switch["collections"]} >= {"observation", "knowledge"}
    diagnosis = client.get("/doctor").json()
    assert diagnosis["healthy"]
    checks = [one["check"] for one in diagnosis["findings"]]
    assert {"model", "search zh semantic"} <= {*checks}
    parts = [client.get("/doctor", params={"part": part}).json()["findings"] for part in ("quick", "data")]
    assert [one["check"] for part in parts for one in part] == checks
    assert [one["check"] for one in parts[1]] == ["database", "documents"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/search", {"query": "  "}, 422, "VALIDATION_FAILED"),
        ("POST", "/search", {"query": "x", "limit": "5"}, 422, "VALIDATION_FAILED"),
        ("POST", "/search", {"query": "x", "nonsense": 1}, 422, "VALIDATION_FAILED"),
        ("POST", "/skills/scan", {"folder": "/no/such/folder"}, 404, "NOT_FOUND"),
        ("POST", "/models/default", {"name": "no-such-model"}, 404, "NOT_FOUND"),
        ("GET", "/documents/novel/nothing", None, 404, "NOT_FOUND"),
        ("GET", "/nothing/here", None, 404, "NOT_FOUND"),
        ("GET", "/jobs/nothing", None, 404, "NOT_FOUND"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_shape(
    client: TestClient, method: str, path: str, body: object, status: int, code: str
) -> None:
    answer = client.request(method, path, json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "notice", "details", "request_id"}
    assert error["notice"]["en"] == error["message"]
    # What the code means; of a wrong field, then which one and how.
    assert error["notice"]["zh"].startswith(in_chinese(code).partition("，")[0])
    assert (error["code"], error["request_id"]) == (code, answer.headers["x-request-id"])


def test_a_body_that_is_not_json_is_told_so_and_not_repeated(client: TestClient) -> None:
    answer = client.post("/search", content=b'{"query": "my secret', headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "MALFORMED_JSON")
    assert "secret" not in answer.text


def test_half_a_surrogate_pair_is_refused_and_not_a_crash(client: TestClient) -> None:
    answer = client.post("/search", content=b'{"query": "\\ud83d"}', headers={"content-type": "application/json"})
    assert answer.status_code == 422


def test_a_model_that_is_named_in_the_settings_cannot_be_changed_here(tmp_path: Path) -> None:
    import homing
    from homing.config import load

    settings = load(environ={"HOMING_EMBEDDING__PROVIDER": "bundled"}).settings
    with (
        homing.open(tmp_path / "data", settings=settings) as app,
        TestClient(create_app(app), base_url="http://127.0.0.1") as client,
    ):
        answer = client.post("/models/default", json={"name": "all-MiniLM-L6-v2-zh"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CONFLICT")


def test_the_openai_routes_are_served_with_the_rest(client: TestClient) -> None:
    answer = client.post("/v1/embeddings", json={"input": "灯塔", "model": "default"})
    assert len(answer.json()["data"][0]["embedding"]) == 384
