"""The endpoint over a real socket: every request is its caller's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.requests import Request
from starlette.routing import Route

import homing
from homing.app import Homing
from homing.mcp import Access
from homing.mcp.http import McpEndpoint
from homing.testing.fake import FakeEmbedder
from tests.mcp.furnished import assert_progress, call, data_of, error_of, first, folders_with_work, run_apart
from tests.server.live import live

pytestmark = pytest.mark.slow


@contextmanager
def served(endpoint: McpEndpoint) -> Iterator[str]:
    """The address of a server that routes to the endpoint."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with endpoint.running():
            yield

    with live(FastAPI(routes=[Route("/mcp", endpoint=endpoint)], lifespan=lifespan)) as address:
        yield f"{address}/mcp"


@pytest.fixture
def url(app: Homing) -> Iterator[str]:
    with served(McpEndpoint(lambda request: Access(app))) as url:
        yield url


def as_user(url: str, token: str, tool: str, **arguments: Any) -> Any:
    async def run() -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)

    return run_apart(run)


def test_a_client_finds_in_both_languages(url: str) -> None:
    assert first(call(url, "find_skills", query="帮我提交代码", limit=1))["name"] == "git-commit"
    assert first(call(url, "search_documents", query="so lonely"))["document_id"] == "第一章"
    assert error_of(call(url, "get_skill", id="none"))["code"] == "NOT_FOUND"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_clients_of_either_protocol_are_served(url: str, mode: str) -> None:
    async def run() -> int:
        async with Client(url, mode=mode) as client:
            return len((await client.list_resources()).resources)

    assert run_apart(run) == 4


def test_each_token_reaches_the_data_of_its_user(tmp_path: Path) -> None:
    with homing.open(tmp_path / "a") as mine, homing.open(tmp_path / "b") as theirs:
        # A model that is loaded embeds in time however busy the machine is.
        assert mine.embedder is not None
        mine.embedder.embed([" "])
        users = {"Bearer one": Access(mine), "Bearer two": Access(theirs, scope="read")}

        def access(request: Request) -> Access:
            return users[request.headers["authorization"]]

        with served(McpEndpoint(access)) as url:
            assert data_of(as_user(url, "one", "remember", text="我的暗号是蓝色"))["embedded"]
            assert data_of(as_user(url, "one", "recall", query="暗号"))["hits"]
            assert data_of(as_user(url, "two", "recall", query="暗号"))["hits"] == []
            assert error_of(as_user(url, "two", "remember", text="x"))["code"] == "FORBIDDEN"


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403), ({"Content-Type": "text/plain"}, 400)],
)
def test_a_page_from_elsewhere_cannot_ask(url: str, headers: dict[str, str], status: int) -> None:
    accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    answer = httpx2.post(
        url, headers=accepted | headers, content=b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    )
    assert answer.status_code == status


def test_a_server_with_tokens_may_have_any_name(app: Homing) -> None:
    with served(McpEndpoint(lambda request: Access(app), loopback_only=False)) as url:
        headers = {"Host": "homing.example", "Accept": "application/json, text/event-stream"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert httpx2.post(url, headers=headers, json=body).status_code == 200


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_progress_of_a_scan_and_an_import_reaches_who_asked(tmp_path: Path, mode: str) -> None:
    folders_with_work(tmp_path)
    with (
        homing.open(tmp_path / "data", embedder=FakeEmbedder(32)) as app,
        served(McpEndpoint(lambda request: Access(app))) as url,
    ):
        assert_progress(tmp_path, url, mode)


def test_each_user_hears_what_changes_in_their_own_folder(tmp_path: Path) -> None:
    with (
        homing.open(tmp_path / "a", embedder=FakeEmbedder(32)) as mine,
        homing.open(tmp_path / "b", embedder=FakeEmbedder(32)) as theirs,
    ):
        users = {"Bearer one": mine, "Bearer two": theirs}
        endpoint = McpEndpoint(lambda request: Access(users[request.headers["authorization"]]), interval=0.02)

        async def listen(url: str, token: str, change: Callable[[Homing], None]) -> list[str]:
            heard: list[str] = []
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
                client.listen(resources_list_changed=True) as events,
                anyio.create_task_group() as beside,
            ):
                beside.start_soon(again_and_again, partial(change, users[f"Bearer {token}"]))
                async for event in events:
                    heard.append(type(event).__name__)
                    break
                beside.cancel_scope.cancel()
            return heard

        numbers = count()

        def add(app: Homing) -> None:
            app.documents.save("novel", f"ch{next(numbers)}", "灯塔")

        async def both(url: str) -> list[list[str]]:
            # The second user's folder changes all the time; the first is told nothing before their own does.
            async with (
                Client(streamable_http_client(url, http_client=one)) as client,
                client.listen(resources_list_changed=True) as quiet,
            ):
                heard = [await listen(url, "two", add)]
                with anyio.move_on_after(0.2) as waited:
                    async for event in quiet:
                        heard.append([type(event).__name__])
                assert waited.cancelled_caught
            return [*heard, await listen(url, "one", add)]

        one = httpx2.AsyncClient(headers={"Authorization": "Bearer one"}, timeout=120)
        with served(endpoint) as url:
            assert run_apart(lambda: both(url)) == [["ResourcesListChanged"], ["ResourcesListChanged"]]


async def again_and_again(change: Callable[[], None]) -> None:
    while True:
        change()
        await anyio.sleep(0.1)
