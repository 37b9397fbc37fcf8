"""`/mcp` of `homing serve`, as a client reaches it: a process, a socket, tokens."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from homing.database.sqlite import SqliteDatabase
from homing.operations.operation import Scope
from homing.server.tokens import Tokens
from tests.mcp.furnished import call, data_of, error_of, first, furnish
from tests.mcp.test_http import as_user
from tests.server.process import serving

pytestmark = pytest.mark.slow


def token(data: Path, user: str, scope: Scope) -> str:
    with closing(SqliteDatabase(data / "homing.db")) as database:
        return Tokens(database).create(user, scope, "").secret


@contextmanager
def served(data: Path) -> Iterator[str]:
    with serving(data, "--log", "none") as server:
        yield f"{server.address}/mcp"
        assert server.stop(signal.SIGTERM) == 0


def test_the_owner_on_this_machine_needs_no_token(tmp_path: Path) -> None:
    furnish(tmp_path).close()
    with served(tmp_path / "data") as url:
        assert first(call(url, "find_skills", query="帮我提交代码", limit=1))["name"] == "git-commit"
        assert first(call(url, "search_documents", query="so lonely"))["document_id"] == "第一章"
        assert data_of(call(url, "remember", text="用户喜欢绿茶"))["collection"] == "knowledge"
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accepted = {"Accept": "application/json, text/event-stream"}
        assert httpx2.post(url, json=body, headers=accepted | {"Host": "evil.example"}).status_code >= 400
        assert httpx2.post(url, json=body, headers=accepted | {"Origin": "https://evil.example"}).status_code >= 400


def test_a_token_decides_whose_data_is_reached_and_what_may_be_done(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ann, reader, bob = token(data, "ann", "write"), token(data, "ann", "read"), token(data, "bob", "write")
    with served(data) as url:
        accepted = {"Accept": "application/json, text/event-stream"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert httpx2.post(url, json=body, headers=accepted).status_code == 401
        assert data_of(as_user(url, ann, "remember", text="安的暗号是蓝色"))["id"]
        assert data_of(as_user(url, reader, "recall", query="暗号"))["hits"]
        assert data_of(as_user(url, bob, "recall", query="暗号"))["hits"] == []
        assert error_of(as_user(url, reader, "remember", text="x"))["code"] == "FORBIDDEN"
