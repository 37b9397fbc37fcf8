"""Documents and skills as resources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ListResourcesResult, TextResourceContents

import homing
from homing.mcp import mcp_server
from tests.mcp.furnished import MANUAL, STORY, call, data_of, with_client
from tests.skills.folders import front, write_skill


async def listed(client: Client) -> ListResourcesResult:
    return await client.list_resources()


def read(server: Any, uri: str) -> str:
    async def ask(client: Client) -> str:
        [content] = (await client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        return content.text

    return with_client(server, ask)


def test_everything_that_is_listed_can_be_read(server: Any) -> None:
    resources = {one.name: one for one in with_client(server, listed).resources}
    assert set(resources) == {"git-commit", "weather-report", "第一章", "git"}
    assert read(server, resources["第一章"].uri) == STORY
    assert read(server, resources["git"].uri) == MANUAL
    assert "先看 `git diff`" in read(server, resources["git-commit"].uri)
    assert resources["weather-report"].mime_type == "text/markdown"


def test_templates_say_how_an_address_is_made(server: Any) -> None:
    async def ask(client: Client) -> set[str]:
        return {one.uri_template for one in (await client.list_resource_templates()).resource_templates}

    assert with_client(server, ask) == {"homing://skills/{skill}", "homing://documents/{project}/{document}"}


@pytest.mark.parametrize(
    "uri",
    ["homing://skills/none", "homing://documents/manuals/none", "homing://documents/none/none", "homing://other/x"],
)
def test_what_is_not_there_is_an_error_that_names_it(server: Any, uri: str) -> None:
    with pytest.raises(MCPError) as raised:
        read(server, uri)
    assert raised.value.code == -32602


def test_what_a_tool_finds_leads_to_the_whole(server: Any) -> None:
    passage = data_of(call(server, "search_documents", query="海鸥"))["hits"][0]
    assert passage["text"] in read(server, passage["uri"])


def test_names_that_no_address_would_take_are_read_all_the_same(tmp_path: Path) -> None:
    names = ["../第 2 章/../../etc", "a/b?c#d&e", "{document}", "100%", "🙂"]
    with homing.open(tmp_path) as app:
        for name in names:
            app.documents.save("p/../q", name, f"text of {name}")
        server = mcp_server(app)
        resources = {one.name: one.uri for one in with_client(server, listed).resources}
        assert {name: read(server, resources[name]) for name in names} == {name: f"text of {name}" for name in names}


def test_skills_that_share_a_name_have_addresses_of_their_own(tmp_path: Path) -> None:
    for place in ("one", "two"):
        write_skill(tmp_path / "skills" / place, "x", front("same", place, f"the body of {place}"))
    with homing.open(tmp_path / "data") as app:
        app.skills.scan(tmp_path / "skills")
        server = mcp_server(app)
        uris = [one.uri for one in with_client(server, listed).resources]
        assert len(set(uris)) == 2
        assert {read(server, uri).strip() for uri in uris} == {"the body of one", "the body of two"}


@pytest.mark.parametrize("cursor", ["x", "", "-1", "1e3", "２", "9" * 30])
def test_a_cursor_that_nobody_gave_out_is_refused(server: Any, cursor: str) -> None:
    async def ask(client: Client) -> None:
        await client.list_resources(cursor=cursor)

    with pytest.raises(MCPError, match="INVALID_ARGUMENT: no cursor"):
        with_client(server, ask)


def test_a_long_list_comes_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.mcp.resources.PAGE", 2)

    async def pages(client: Client) -> list[list[str]]:
        found, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            found.append([one.name for one in page.resources])
            cursor = page.next_cursor
            if cursor is None:
                return found

    with homing.open(tmp_path) as app:
        for number in range(5):
            app.documents.save("p", f"d{number}", "text")
        server = mcp_server(app)
        assert with_client(server, pages) == [["d0", "d1"], ["d2", "d3"], ["d4"]]
