"""Every operation answers over HTTP what the function answers, with the same defaults and the same errors."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from homing.app import Homing
from homing.errors import HomingError
from homing.operations import OPERATIONS, Call, Operation

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "list_projects": [{}],
    "list_documents": [{"project": "novel"}, {"project": "novel", "limit": 1, "offset": 1}, {"project": "无"}],
    "search_documents": [
        {"project": "novel", "query": "孤独的感觉"},
        {"project": "novel", "query": "market", "mode": "keyword", "limit": 1},
        {"project": "novel", "query": "燈塔", "min_score": None, "document": "ch1"},
    ],
    "list_chunks": [{"project": "novel", "document": "ch1"}, {"project": "novel", "document": "没有 /这一章"}],
    "get_document": [{"project": "novel", "document": "ch2"}, {"project": "novel", "document": "ch9"}],
    "delete_document": [{"project": "novel", "document": "ch9"}],
    "rename_document": [
        {"project": "novel", "document": "ch9", "name": "x"},
        {"project": "novel", "document": "ch1", "name": "ch2"},
    ],
    "move_document": [{"project": "novel", "document": "ch9", "to": "archive"}],
    "recall": [{"query": "点菜要注意什么"}, {"query": "invoices", "collections": ["knowledge"], "limit": 1}],
    "list_memories": [{}, {"collection": "observation", "limit": 1}],
    "forget": [{"id": "nothing has this id"}],
    "list_skills": [{}, {"limit": 1, "offset": 1}],
    "find_skills": [{"query": "帮我提交代码"}, {"query": "read a file", "limit": 1, "threshold": 0.99}],
    "get_skill": [{"id": "git-commit"}, {"id": "no such skill"}],
    "get_home": [{}],
    "ask_devices": [{"text": "打开除卧室以外的灯"}, {"text": "turn it off", "room": "客厅"}],
    "search_files": [{"query": "年假"}, {"query": "年假", "file_names": []}],
    "list_files": [{}],
    "delete_file": [{"file_name": "没有.txt"}, {"file_name": "a/b\u202e.txt"}],
    "search_everything": [{"query": "灯塔"}, {"query": "lighthouse", "sources": ["documents"], "limit": 1}],
    "list_models": [{}],
    "get_model_change": [{}],
    "list_evaluations": [{}],
    "get_evaluation": [{"id": "none"}],
    "run_doctor": [{}],
}
"""Requests that change nothing, by operation."""
CHANGING = {
    "delete_project", "save_document", "reindex_documents", "remember", "scan_skills", "put_home",
    "change_default_model", "add_examples",
}  # fmt: skip
"""Operations that are tried by the tests of their own routes."""
TIMES = re.compile(r"_ms$|^seconds|^seen$|^detail")


def by_hand(bound: Operation, call: Call, given: dict[str, Any]) -> tuple[int, Any]:
    try:
        return 200, bound.run(call, bound.input.model_validate(given)).model_dump(mode="json")
    except HomingError as error:
        return 0, error.code


def over_http(bound: Operation, client: TestClient, given: dict[str, Any]) -> tuple[int, Any]:
    assert bound.http is not None
    method, path = bound.http.split()
    rest = dict(given)

    def placed(match: re.Match[str]) -> str:
        return quote(str(rest.pop(match.group(1))), safe="")

    path = re.sub(r"\{(\w+)(?::\w+)?\}", placed, path)
    if method in ("GET", "DELETE"):
        answer = client.request(method, path, params=rest)
    else:
        answer = client.request(method, path, json=rest)
    found = answer.json()
    return (200, found) if answer.is_success else (0, found["error"]["code"])


def timeless(found: Any) -> Any:
    """The same without how long things took."""
    if isinstance(found, dict):
        return {key: timeless(value) for key, value in found.items() if not TIMES.search(key)}
    return [timeless(one) for one in found] if isinstance(found, list | tuple) else found


def test_every_operation_is_tried_here_or_changes_something() -> None:
    assert set(EXAMPLES) | CHANGING == set(OPERATIONS)
    assert not set(EXAMPLES) & CHANGING


@pytest.mark.parametrize("name", EXAMPLES)
def test_http_answers_what_the_function_answers(app: Homing, client: TestClient, name: str) -> None:
    bound, call = OPERATIONS[name], Call(app, app)
    for given in EXAMPLES[name]:
        assert timeless(over_http(bound, client, given)) == timeless(by_hand(bound, call, given)), given


def test_the_description_of_the_api_has_each_once_with_its_defaults(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    found = {
        one["operationId"]: (f"{method.upper()} {path}", one)
        for path, methods in described["paths"].items()
        for method, one in methods.items()
    }
    for bound in OPERATIONS.values():
        assert bound.http is not None
        where, told = found[bound.name]
        assert where == re.sub(r":\w+\}", "}", bound.http)
        assert told["description"] == bound.description
        parameters = {one["name"]: one["schema"] for one in told.get("parameters", ())}
        body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        schema = described["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
        fields = {**schema.get("properties", {}), **parameters}
        for name, field in bound.input.model_fields.items():
            if name != "root" and not field.is_required() and field.default is not None:
                assert fields[name]["default"] == field.default, (bound.name, name)
