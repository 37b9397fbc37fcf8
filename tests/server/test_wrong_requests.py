"""Requests that nobody should send: each gets a stable code and a sentence that says what to send instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from homing.app import Homing

JSON = {"content-type": "application/json"}
FORM = {"content-type": "multipart/form-data; boundary=XX"}
POSTED = [
    "/search",
    "/skills/search",
    "/documents/novel/search",
    "/memory/remember",
    "/memory/recall",
    "/devices/ask",
    "/map",
]


def refused(client: TestClient, status: int, code: str, method: str, path: str, **request: Any) -> str:
    answer = client.request(method, path, **request)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == code
    return str(error["message"])


@pytest.mark.parametrize("path", POSTED)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param('{"query": "灯塔'.encode(), id="cut"),
        pytest.param('{"query": "灯塔"}'.encode("gbk"), id="not UTF-8"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="too deep"),
        pytest.param(b'{"limit": ' + b"9" * 5_000 + b"}", id="too long a number"),
    ],
)
def test_a_body_that_is_not_json_is_said_to_be(client: TestClient, path: str, body: bytes) -> None:
    told = refused(client, 400, "MALFORMED_JSON", "POST", path, content=body, headers=JSON)
    assert "UTF-8" in told


@pytest.mark.parametrize("path", POSTED)
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ('{"query": "x"}', {"content-type": "text/plain"}),
        ('{"query": "x"}', {}),
        ("query=x", {"content-type": "application/x-www-form-urlencoded"}),
        ("", JSON),
        ("null", JSON),
        ("[]", JSON),
        ('"x"', JSON),
    ],
)
def test_a_body_that_is_no_json_object_is_told_how_to_be_one(
    client: TestClient, path: str, body: str, headers: dict[str, str]
) -> None:
    told = refused(client, 422, "VALIDATION_FAILED", "POST", path, content=body, headers=headers)
    assert told == "body: should be a JSON object, sent with `content-type: application/json`"


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        (
            "/search",
            {"qurey": "x", "query": "y"},
            "body.qurey: is not known (did you mean query?); it takes query, sources, project, limit",
        ),
        (
            "/search",
            {"query": "x", "nonsense": 1},
            "body.nonsense: is not known; it takes query, sources, project, limit",
        ),
        ("/search", {}, "body.query: is required"),
        (
            "/search",
            {"qurey": "x"},
            "body.query: is required; body.qurey: is not known (did you mean query?); it takes query,",
        ),
        ("/search", {"query": " \n\t　"}, "body.query: is blank; it needs at least one character that can be seen"),
        ("/memory/remember", {"text": "x", "id": "a\0b"}, "body.id: has a NUL character in it; leave that out"),
        (
            "/memory/remember",
            {"text": "x", "session_key": "\0"},
            "body.session_key: has a NUL character in it; leave that out",
        ),
        ("/search", {"query": "x", "limit": "５"}, "body.limit: should be a valid integer"),
        ("/search", {"query": "x", "limit": -1}, "body.limit: should be greater than or equal to 1"),
        ("/search", {"query": "x", "limit": 10**30}, "body.limit: should be less than or equal to 100"),
        ("/devices/ask", {"text": "开灯", "state": {"lsat": []}}, "body.state.lsat: is not known"),
    ],
)
def test_a_wrong_field_is_named_with_what_it_should_be(
    client: TestClient, path: str, body: dict[str, Any], told: str
) -> None:
    assert refused(client, 422, "VALIDATION_FAILED", "POST", path, json=body).startswith(told)


@pytest.mark.parametrize(
    ("body", "notice"),
    [
        ({}, "body.query 是必填项"),
        (
            {"qurey": "x", "query": "y"},
            "body.qurey 是未知的字段（是不是 query？）；可用的字段：query、sources、project、limit、weaker",
        ),
        ({"query": " "}, "body.query 是空白，至少要有一个看得见的字"),
        ({"query": "x", "limit": "５"}, "body.limit 应为整数"),
        ({"query": "x", "limit": 0}, "body.limit 不能小于 1"),
        ({"query": "x", "project": ""}, "body.project 至少要有 1 个字符"),
    ],
)
def test_a_wrong_field_is_named_in_chinese_too(client: TestClient, body: dict[str, Any], notice: str) -> None:
    error = client.post("/search", json=body).json()["error"]
    assert error["notice"]["zh"] == f"请求的格式有误：{notice}"


@pytest.mark.parametrize("path", ["/search", "/ipc/embedding:search"])
def test_a_question_cut_in_the_middle_of_an_emoji_is_said_to_be(client: TestClient, path: str) -> None:
    answer = client.post(path, content=rb'{"projectId": "novel", "query": "\ud83d"}', headers=JSON)
    assert answer.status_code in (400, 422)
    assert "query: has half of a character in it" in answer.json()["error"]["message"].replace(
        "query has", "query: has"
    )


def test_numbers_that_json_does_not_have_are_refused(client: TestClient) -> None:
    for number in ("NaN", "Infinity", "1e999"):
        for path, field in (("/search", "limit"), ("/skills/search", "threshold"), ("/memory/recall", "max_distance")):
            body = f'{{"query": "灯塔", "{field}": {number}}}'
            told = refused(client, 422, "VALIDATION_FAILED", "POST", path, content=body, headers=JSON)
            assert told.startswith(f"body.{field}: ")


@pytest.mark.parametrize("path", ["/knowledge/upload", "/files/text"])
@pytest.mark.parametrize(
    ("code", "status", "request_"),
    [
        ("VALIDATION_FAILED", 422, {"json": {"file": "x"}}),
        ("VALIDATION_FAILED", 422, {"data": {"file": "x"}}),
        ("VALIDATION_FAILED", 422, {"files": {"another": ("a.txt", b"x")}}),
        ("MALFORMED_FORM", 400, {"content": b"x", "headers": {"content-type": "multipart/form-data"}}),
        ("MALFORMED_FORM", 400, {"content": b"--YY\r\n\r\n", "headers": FORM}),
    ],
)
def test_an_upload_that_holds_no_file_is_told_how_to_send_one(
    client: TestClient, path: str, code: str, status: int, request_: dict[str, Any]
) -> None:
    assert "multipart/form-data" in refused(client, status, code, "POST", path, **request_)


def test_an_address_where_nothing_is_says_where_to_look(client: TestClient) -> None:
    assert "/openapi.json" in refused(client, 404, "NOT_FOUND", "GET", "/nothing/here")


def test_a_wrong_method_is_told_the_right_ones(client: TestClient) -> None:
    told = refused(client, 405, "METHOD_NOT_ALLOWED", "GET", "/map")
    assert told == "GET is not what this address takes; it takes POST"


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 20_000, rb'{"\ud800": 1}', rb'{"input": "x", "model": "\ud800"}']
)
def test_what_openai_would_not_take_is_refused_in_its_words(client: TestClient, body: bytes) -> None:
    answer = client.post("/v1/embeddings", content=body, headers=JSON)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("home", "told"),
    [
        (
            r'{"devices": [{"id": "a", "name": "灯", "aliases": ["\udfff"]}]}',
            "the home has half of a surrogate pair in it",
        ),
        (r'{"devices": [{"id": "\ud800", "name": "灯"}]}', "the home has half of a surrogate pair in it"),
        ('{"devices": [{"id": "a", "name": "灯"}], "rooms": "卧室"}', "the home: rooms are a list"),
        ('{"items": [{"deviceId": null}]}', "the home: id: Input should be a valid string"),
        (
            f'{{"devices": [{{"id": "a", "name": "{"灯" * 10_001}"}}]}}',
            "the home: device 1 (a): name: String should have at",
        ),
        ('{"devices": [{"id": "a", "name": "灯", "commands": "on"}]}', "the home: device 1 has the profile 'on'"),
    ],
)
def test_a_home_that_cannot_be_is_refused_and_the_one_before_stays(client: TestClient, home: str, told: str) -> None:
    before = client.get("/devices").json()
    refusal = refused(client, 400, "INVALID_ARGUMENT", "PUT", "/devices", content=home.encode(), headers=JSON)
    assert refusal.startswith(told)
    assert "\n" not in refusal
    assert client.get("/devices").json() == before


def test_half_an_emoji_that_an_editor_saved_does_not_hide_the_rest(client: TestClient, app: Homing) -> None:
    # Autosave may cut between the two halves of 🗝; JavaScript sends the first one by itself.
    text = json.loads(r'"钥匙 \ud83d 在抽屉里\n\nthe second paragraph"')
    saved = client.post(
        "/ipc/document:save", content=json.dumps({"projectId": "half", "documentId": "d", "text": text})
    )
    assert saved.json()["ok"]
    app.documents.flush()
    shown = "钥匙 \ufffd 在抽屉里"
    assert client.get("/documents/half/d").json()["text"].startswith(shown)
    assert client.get("/documents/half/d/chunks").json()["chunks"][0]["text"] == shown
    for mode in ("keyword", "semantic", "hybrid"):
        found = client.post(
            "/documents/half/search", json={"query": "钥匙在抽屉里", "mode": mode, "min_score": None}
        ).json()
        [hit] = [hit for hit in found["hits"] if hit["text"] == shown]
        assert all(hit["text"][start:end] in "钥匙在抽屉里" for start, end in hit["spans"])
    [group] = client.post("/search", json={"query": "钥匙", "sources": ["documents"]}).json()["groups"]
    assert group["hits"][0]["text"] == shown
    client.delete("/documents/half")
