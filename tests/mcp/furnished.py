"""A data folder with a little of everything, in both languages, and short ways to ask a server about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import Client
from mcp_types import CallToolResult, TextContent

import homing
from homing.app import Homing
from tests.skills.folders import front, write_skill

T = TypeVar("T")

STORY = "他一个人守着灯塔，三十年没有和人说话。\n\n海鸥每天清晨飞过，从不停留。"
MANUAL = "Amend a commit that was not pushed yet with `git commit --amend`.\n\n推送之後就不要再修改提交。"
HOME = {
    "rooms": [{"name": "客厅", "aliases": ["living room"]}, {"name": "卧室", "aliases": ["bedroom"]}],
    "devices": [
        {"id": "light.living", "name": "客厅灯", "type": "light", "room": "客厅"},
        {"id": "light.bedside", "name": "床头灯", "type": "light", "room": "卧室"},
    ],
}


def furnish(folder: Path) -> Homing:
    """An open app whose data lies in `folder`/data."""
    import json

    skills = folder / "skills"
    write_skill(skills, "提交", front("git-commit", "分析 Git 改动，写出规范的提交信息", "先看 `git diff`，再提交。"))
    write_skill(skills, "weather", front("weather-report", "Tell the weather of a city", "Look it up; say it. 🌦"))
    home = folder / "home.json"
    home.write_text(json.dumps(HOME, ensure_ascii=False), encoding="utf-8")
    app = homing.open(folder / "data")
    app.skills.scan(skills)
    app.documents.save("小说", "第一章", STORY)
    app.documents.save("manuals", "git", MANUAL)
    app.documents.flush(120)
    app.devices.load(home)
    return app


def run_apart(work: Callable[[], Awaitable[T]]) -> T:
    """Run something asynchronous in a thread of its own: a browser's tests may have a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, work).result()


def with_client(server: Any, ask: Callable[[Client], Awaitable[T]]) -> T:
    """What `ask` gets from a client that is connected to the server."""

    async def run() -> T | Exception:
        async with Client(server, read_timeout_seconds=300) as client:
            try:
                return await ask(client)
            except Exception as error:
                # Raised out here it would come wrapped in the groups of the client's tasks.
                return error

    answer = run_apart(run)
    if isinstance(answer, Exception):
        raise answer
    return answer


def call(server: Any, tool: str, **arguments: Any) -> CallToolResult:
    """One call of one tool."""

    async def ask(client: Client) -> CallToolResult:
        result = await client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result

    return with_client(server, ask)


def text_of(result: CallToolResult) -> str:
    """What a model reads."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def data_of(result: CallToolResult) -> dict[str, Any]:
    """What a program reads; the call must have gone well."""
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    data: dict[str, Any] = result.structured_content
    return data


def first(result: CallToolResult) -> dict[str, Any]:
    """What the first hit of a search is about."""
    metadata: dict[str, Any] = data_of(result)["hits"][0]["metadata"]
    return metadata


def error_of(result: CallToolResult) -> dict[str, Any]:
    """The error of a call that must have failed; a model reads the code first."""
    assert result.is_error
    assert result.structured_content is not None
    error: dict[str, Any] = result.structured_content["error"]
    assert text_of(result).startswith(f"{error['code']}: ")
    return error


def folders_with_work(folder: Path) -> None:
    """Three skills and three files, to be scanned and imported."""
    for name in ("one", "two", "three"):
        write_skill(folder / "skills", name, front(name, f"技能 {name}", "Do it."))
        (folder / "notes").mkdir(exist_ok=True)
        (folder / "notes" / f"{name}.md").write_text(f"灯塔 {name}", encoding="utf-8")


def assert_progress(folder: Path, server: Any, mode: Any) -> None:
    """Both tools that may take long tell how far they are, in order, who wants to know."""
    told: dict[str, list[tuple[float, float | None]]] = {"scan_skills": [], "import_documents": []}

    async def run() -> list[Any]:
        answers = []
        async with Client(server, mode=mode, read_timeout_seconds=300) as client:
            for tool, asked in (
                ("scan_skills", {"folder": str(folder / "skills")}),
                ("import_documents", {"folder": str(folder / "notes"), "project": "notes"}),
            ):

                async def note(progress: float, total: float | None, message: str | None, tool: str = tool) -> None:
                    told[tool].append((progress, total))

                answers.append(await client.call_tool(tool, asked, progress_callback=note))
        return answers

    scanned, imported = run_apart(run)
    assert data_of(scanned)["indexed"] == 3
    assert (data_of(imported)["saved"], data_of(imported)["skipped"]) == (3, 0)
    for one in told.values():
        assert one
        assert one == sorted(set(one))
        assert {total for _, total in one} == {3}
