"""Everything the description of the API promises, tried on the real server by schemathesis: valid and invalid requests,
other methods, missing tokens; whether statuses, headers and bodies are as described. Every corner of every body is
tried in `make soak`; here each operation gets its examples and one request of each kind made at random.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

import homing
from homing.config import Settings
from homing.operations.operation import SCOPES, Scope
from homing.server.application import create_app
from homing.server.tokens import Tokens
from tests.effort import SOAK, times
from tests.server.contents import HOME, MEMORIES, NOVEL
from tests.server.live import live

ALWAYS = {"400", "401", "403", "429", "500", "503"}
OTHER_ERRORS = ("/ipc", "/v1", "/health")
"""What answers in a shape of its own: the envelope of channels, OpenAI's, and health itself."""


@dataclass(frozen=True)
class Described:
    """A server with tokens, by scope."""

    address: str
    tokens: Mapping[Scope, str]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Described]:
    data = tmp_path_factory.mktemp("described")
    with homing.open(data, settings=Settings()) as app:
        tokens = Tokens(app.database)
        secrets = {scope: tokens.create("owner", scope).secret for scope in SCOPES}
        for collection, text in MEMORIES:
            app.memory.remember(collection, text)
        for document, text in NOVEL.items():
            app.documents.save("novel", document, text)
        app.devices.replace(HOME)
        with live(create_app(app)) as address:
            yield Described(address, secrets)


def configuration(tokens: Mapping[Scope, str]) -> str:
    """Every check, on every operation; few are special."""

    def header(scope: Scope) -> str:
        return f"headers = {{ Authorization = {json.dumps('Bearer ' + tokens[scope])} }}"

    return f"""
{header("admin")}
generation.max-examples = {times(1, in_full=10)}
generation.database = "none"
generation.deterministic = true
phases.coverage.enabled = {json.dumps(SOAK)}
phases.stateful.enabled = false

# Which dimensions a model gives, and that a document is named with its project, no schema can say.
[[operations]]
include-path = ["/v1/embeddings", "/ipc/embedding:generate", "/ipc/embedding:reindex"]
checks.positive_data_acceptance.enabled = false

# Whether a home can be read neither: it may have many forms.
[[operations]]
include-path = "/devices"
include-method = "PUT"
checks.positive_data_acceptance.enabled = false

# Nor whether a file can; and every part of a form is a file to who reads it.
[[operations]]
include-path = ["/files/text", "/knowledge/upload"]
checks.positive_data_acceptance.enabled = false
checks.negative_data_rejection.enabled = false

# Every corner of a large body would take minutes: these are tried at random alone.
[[operations]]
include-path-regex = "^/(map|ipc/.*)$"
phases.coverage.enabled = false

# A scan of whatever folder comes to mind is not tried out.
[[operations]]
include-path = "/skills/scan"
{header("write")}
"""


@pytest.mark.slow
def test_the_server_is_as_it_is_described(described: Described, tmp_path: Path) -> None:
    file = tmp_path / "schemathesis.toml"
    file.write_text(configuration(described.tokens), encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
            *("--config-file", str(file), "--no-color", "run", "--seed", "1", f"{described.address}/openapi.json"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr


def fields(body: dict[str, Any], document: dict[str, Any]) -> list[dict[str, Any]]:
    """What a body may hold."""
    reference = next((one["$ref"] for one in (body, *body.get("anyOf", ())) if "$ref" in one), None)
    if reference is not None:
        body = document["components"]["schemas"][reference.rpartition("/")[2]]
    return list(body.get("properties", {}).values())


@pytest.mark.slow
def test_every_operation_says_what_it_does_and_how_it_fails(described: Described) -> None:
    document = httpx2.get(f"{described.address}/openapi.json").json()
    ids = [operation["operationId"] for operations in document["paths"].values() for operation in operations.values()]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", one) for one in ids), ids
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (method, path)
            assert " ".join(operation["description"].split()).startswith(operation["summary"]), (method, path)
            if not path.startswith(OTHER_ERRORS):
                failures = {status for status in operation["responses"] if status >= "400"}
                expected = ALWAYS | ({"413", "422"} if "requestBody" in operation else set())
                expected |= {"422"} if operation.get("parameters") else set()
                assert failures - {"404", "409", "415"} == expected, (method, path)
                assert ("409" in failures) <= ("202" in operation["responses"]), (method, path)
            described_body = (
                operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            )
            if described_body is not None and not path.startswith("/ipc"):
                shown = [one for one in fields(described_body, document) if {"example", "examples"} & set(one)]
                assert shown or not fields(described_body, document), (method, path)
            if path != "/health":
                assert operation["security"] == [{"HTTPBearer": []}], (method, path)
