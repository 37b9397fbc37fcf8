"""Every operation answers on each of its surfaces what the function answers, with the same defaults and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from mcp import Client

from homing.app import Homing
from homing.channels import CHANNELS, Channels, schemas
from homing.channels.envelope import as_json
from homing.channels.messages import as_message
from homing.errors import HomingError
from homing.mcp import mcp_server
from homing.operations import OPERATIONS, Call, Operation
from tests.channels.ipc_process import IpcProcess
from tests.mcp.furnished import call as call_tool
from tests.mcp.furnished import data_of, error_of, with_client
from tests.server.contents import NOVEL

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "list_projects": [{}],
    "list_documents": [{"project": "novel"}, {"project": "novel", "limit": 1, "offset": 1}, {"project": "无"}],
    "search_documents": [
        {"project": "novel", "query": "孤独的感觉"},
        {"project": "novel", "query": "market", "mode": "keyword", "limit": 1},
        {"project": "novel", "query": "燈塔", "min_score": 0.5, "document": "ch1"},
        {"project": "无", "query": "灯塔"},
    ],
    "search_by_meaning": [
        {"project": "novel", "query": "孤独的感觉"},
        {"project": "novel", "query": "lonely", "mode": "hybrid", "top_k": 1, "min_score": 0.1},
        {"project": "无", "query": "灯塔"},
    ],
    "search_by_words": [{"project": "novel", "query": "燈塔"}, {"project": "novel", "query": "market", "limit": 1}],
    "retrieve_for_prompt": [{"project": "novel", "query": "灯塔"}, {"project": "novel", "query": "market", "top_k": 1}],
    "get_rag_config": [{}],
    "update_rag_config": [{}],
    "generate_embeddings": [{"texts": ["灯塔", "lighthouse 😀"]}, {"texts": ["灯"], "dimensions": 5}],
    "get_embedding_status": [{}, {"project": "novel", "wait_ms": 10_000}],
    "reindex_documents": [
        {"project": "novel"},
        {"project": "novel", "document": "ch1", "batch_size": 1},
        {"project": "无"},
    ],
    "get_document_source": [{"project": "novel", "document": "ch1"}, {"project": "novel", "document": "ch9"}],
    "discard_document": [{"project": "novel", "document": "ch9"}],
    "list_chunks": [
        {"project": "novel", "document": "ch1"},
        {"project": "novel", "document": "ch1", "include_embedding": True, "offset_unit": "utf-16"},
        {"project": "novel", "document": "没有 /这一章"},
    ],
    "get_document": [{"project": "novel", "document": "ch2"}, {"project": "novel", "document": "ch9"}],
    "delete_document": [{"project": "novel", "document": "ch9"}],
    "delete_project": [{"project": "无"}],
    "save_document": [{"project": "novel", "document": "ch1", "text": NOVEL["ch1"]}],
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
    "remember", "scan_skills", "put_home",
    "change_default_model", "add_examples", "import_documents",
}  # fmt: skip
"""Operations that are tried by the tests of their own routes."""
TIMES = re.compile(r"_ms$|Ms$|^seconds|^seen$|^detail")

Answer = tuple[bool, Any]
"""Whether it went well, and the answer or the code of the error."""


def by_hand(bound: Operation, app: Homing, given: dict[str, Any]) -> Answer:
    try:
        return True, bound.run(Call(app, app), bound.input.model_validate(given))
    except HomingError as error:
        return False, error.code


def over_http(bound: Operation, client: TestClient, given: dict[str, Any]) -> Answer:
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
    if not answer.is_success:
        return False, found["error"]["code"]
    if bound.job is not None:
        assert client.get(f"/jobs/{found['id']}/events").status_code == 200
        found = client.get(f"/jobs/{found['id']}").json()["result"]
    return True, found


def timeless(found: Any) -> Any:
    """The same without how long things took."""
    if isinstance(found, dict):
        return {key: timeless(value) for key, value in found.items() if not TIMES.search(key)}
    return [timeless(one) for one in found] if isinstance(found, list | tuple) else found


def assert_same(bound: Operation, app: Homing, ask: Callable[[dict[str, Any]], Answer], *, on_channel: bool) -> None:
    """What a surface answers is what the function does, for every example."""
    for given in EXAMPLES[bound.name]:
        fine, expected = by_hand(bound, app, given)
        if fine:
            expected = json.loads(as_json(as_message(expected))) if on_channel else expected.model_dump(mode="json")
        assert timeless(ask(given)) == timeless((fine, expected)), given


def spelled(channel: str, given: dict[str, Any]) -> dict[str, Any]:
    fields = CHANNELS[channel].request.model_fields
    return {str(fields[name].alias): value for name, value in given.items()}


def enveloped(envelope: dict[str, Any]) -> Answer:
    return (True, envelope["data"]) if envelope["ok"] else (False, envelope["error"]["code"])


ON_HTTP = [name for name in EXAMPLES if OPERATIONS[name].http]
TOOLS = {name: one.tool.name for name, one in OPERATIONS.items() if one.tool is not None}
ON_CHANNELS = {name: one.channel.name for name, one in OPERATIONS.items() if one.channel is not None}


def test_every_operation_is_tried_here_or_changes_something() -> None:
    assert set(EXAMPLES) | CHANGING == set(OPERATIONS)
    assert not set(EXAMPLES) & CHANGING
    assert all(one.http or one.tool or one.channel for one in OPERATIONS.values())


@pytest.mark.parametrize("name", ON_HTTP)
def test_http_answers_what_the_function_answers(app: Homing, client: TestClient, name: str) -> None:
    bound = OPERATIONS[name]
    assert_same(bound, app, lambda given: over_http(bound, client, given), on_channel=False)


@pytest.mark.parametrize("name", sorted(set(TOOLS) & set(EXAMPLES)))
def test_a_tool_answers_what_the_function_answers(app: Homing, name: str) -> None:
    server = mcp_server(app)

    def ask(given: dict[str, Any]) -> Answer:
        found = call_tool(server, TOOLS[name], **given)
        return (False, error_of(found)["code"]) if found.is_error else (True, data_of(found))

    assert_same(OPERATIONS[name], app, ask, on_channel=False)


@pytest.mark.parametrize("name", sorted(set(ON_CHANNELS) & set(EXAMPLES)))
def test_a_channel_answers_what_the_function_answers(app: Homing, client: TestClient, name: str) -> None:
    channel, channels = ON_CHANNELS[name], Channels(app)

    def over_ipc(given: dict[str, Any]) -> Answer:
        return enveloped(client.post(f"/ipc/{channel}", json=spelled(channel, given)).json())

    bound = OPERATIONS[name]
    assert_same(bound, app, lambda given: enveloped(channels.invoke(channel, spelled(channel, given))), on_channel=True)
    assert_same(bound, app, over_ipc, on_channel=True)


@pytest.fixture(scope="module")
def process(app: Homing) -> Iterator[IpcProcess]:
    with IpcProcess(app.settings.data) as process:
        yield process.initialize()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(ON_CHANNELS) & set(EXAMPLES)))
def test_a_channel_of_another_process_answers_what_the_function_answers(
    app: Homing, process: IpcProcess, name: str
) -> None:
    channel = ON_CHANNELS[name]
    ask: Callable[[dict[str, Any]], Answer] = lambda given: enveloped(process.call(channel, spelled(channel, given)))  # noqa: E731
    assert_same(OPERATIONS[name], app, ask, on_channel=True)


def assert_defaults(bound: Operation, fields: dict[str, Any], spelling: Callable[[str], str] = str) -> None:
    for name, field in bound.input.model_fields.items():
        if name != "root" and not field.is_required() and field.default is not None:
            assert fields[spelling(name)]["default"] == field.default, (bound.name, name)


def test_the_description_of_the_api_has_each_once_with_its_defaults(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    found = {
        one["operationId"]: (f"{method.upper()} {path}", one)
        for path, methods in described["paths"].items()
        for method, one in methods.items()
    }
    for bound in OPERATIONS.values():
        if bound.http is None:
            continue
        where, told = found[bound.name]
        assert where == re.sub(r":\w+\}", "}", bound.http)
        assert told["description"] == bound.description
        parameters = {one["name"]: one["schema"] for one in told.get("parameters", ())}
        body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        reference = next((one["$ref"] for one in (body, *body.get("anyOf", ())) if "$ref" in one), "")
        schema = described["components"]["schemas"].get(reference.rpartition("/")[2], {})
        assert_defaults(bound, {**schema.get("properties", {}), **parameters})


def test_tools_are_few_and_have_the_defaults_and_schemas_of_their_operations(app: Homing) -> None:
    async def listed(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = {one.name: one for one in with_client(mcp_server(app), listed)}
    assert set(tools) == set(TOOLS.values())
    assert len(tools) <= 15
    for name, tool in TOOLS.items():
        bound = OPERATIONS[name]
        # What reads folders of the machine is the owner's; all other administration has no tool.
        assert (bound.scope == "admin") == (name in {"scan_skills", "import_documents"})
        assert_defaults(bound, tools[tool].input_schema["properties"])
        assert tools[tool].output_schema == bound.output.model_json_schema(mode="serialization")


def test_the_schemas_of_channels_have_the_defaults_of_their_operations() -> None:
    described = schemas()
    for name, channel in ON_CHANNELS.items():
        request = described["channels"][channel]["request"]["$ref"].rpartition("/")[2]
        fields = CHANNELS[channel].request.model_fields
        properties = described["$defs"][request].get("properties", {})
        assert_defaults(OPERATIONS[name], properties, lambda one, known=fields: str(known[one].alias))  # type: ignore[misc]
