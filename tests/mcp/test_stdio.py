"""`homing mcp` as a client starts it: a process of its own, spoken to over its standard input and output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextResourceContents

import homing
from homing.operations.addresses import document_uri
from tests.forked import command, run, start, start_python
from tests.mcp.furnished import (
    assert_progress,
    call,
    data_of,
    error_of,
    folders_with_work,
    furnish,
    text_of,
    with_client,
)

pytestmark = pytest.mark.slow

RUN = "from homing.cli.main import run; run()"
NOISY = (
    "import os, sys\n"
    "import homing.memory.service as memory\n"
    "kept = memory.Memory.recall\n"
    "def noisy(self, *args, **kwargs):\n"
    "    print('a library prints')\n"
    "    os.write(1, b'and one that is not Python\\n')\n"
    "    os.system('echo a child, too')\n"
    "    return kept(self, *args, **kwargs)\n"
    "memory.Memory.recall = noisy\n"
    "print('before', end='')\n"
)


def started(data: Path) -> StdioServerParameters:
    """How a client starts it."""
    program, *arguments = command()
    return StdioServerParameters(command=program, args=[*arguments, "mcp", "--data", str(data)], env=environment())


def environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name == "HOMING_DATA" or not name.startswith("HOMING_")
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stdio")
    furnish(folder).close()
    return folder / "data"


@pytest.fixture
def server(data: Path) -> StdioServerParameters:
    return started(data)


def test_a_client_finds_remembers_recalls_and_reads(server: StdioServerParameters) -> None:
    async def ask(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 11
        skills = await client.call_tool("find_skills", {"query": "帮我提交代码", "limit": 1})
        assert data_of(skills)["hits"][0]["metadata"]["name"] == "git-commit"
        await client.call_tool("remember", {"text": "The user prefers 绿茶 to coffee ☕", "collection": "observation"})
        recalled = await client.call_tool("recall", {"query": "喝什么"})
        assert data_of(recalled)["hits"][0]["text"] == "The user prefers 绿茶 to coffee ☕"
        passages = await client.call_tool("search_documents", {"query": "the feeling of being alone"})
        assert data_of(passages)["hits"][0]["metadata"]["document_id"] == "第一章"
        devices = await client.call_tool("find_devices", {"text": "turn on the light in the bedroom"})
        assert data_of(devices)["steps"][0]["candidates"][0]["id"] == "light.bedside"
        assert len((await client.list_resources()).resources) == 4

    with_client(server, ask)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_progress_of_a_scan_and_an_import_reaches_who_asked(tmp_path: Path, mode: str) -> None:
    folders_with_work(tmp_path)
    assert_progress(tmp_path, started(tmp_path / "data"), mode)


def test_what_was_remembered_outlives_the_process(server: StdioServerParameters) -> None:
    call(server, "remember", text="会议改到周四下午三点", id="meeting")
    found = data_of(call(server, "recall", query="when is the meeting"))["hits"]
    assert found[0]["id"] == "meeting"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_its_input_is_open(data: Path, number: signal.Signals) -> None:
    process = start_python(
        ["-c", RUN, "mcp", "--data", str(data)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(number)
    assert process.wait(300) == 128 + number
    process.stdin.close()
    process.stdout.close()


def test_an_error_of_the_tool_leaves_the_server_running(server: StdioServerParameters) -> None:
    async def ask(client: Client) -> None:
        assert error_of(await client.call_tool("get_skill", {"id": "none"}))["code"] == "NOT_FOUND"
        assert data_of(await client.call_tool("recall", {"query": "会议"}))["mode"] == "hybrid"

    with_client(server, ask)


def spoken(lines: list[str], answers: int, *arguments: str, before: str = "") -> tuple[list[str], str, int]:
    """What the process writes to its two outputs when it is sent these lines, and how it ends."""
    process = start_python(
        ["-c", before + RUN, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in lines))
    process.stdin.flush()
    read = [process.stdout.readline() for _ in range(answers)]
    rest, errors = process.communicate(timeout=300)
    return [*read, *rest.splitlines()], errors, process.wait()


HELLO = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def asked(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_standard_output_holds_answers_and_nothing_else_whatever_a_library_prints(data: Path) -> None:
    lines = [json.dumps(one) for one in [*HELLO, asked(2, "recall", query="灯塔")]]
    answers, errors, code = spoken(lines, 2, "-v", "mcp", "--data", str(data), before=NOISY)
    # What was printed before the command began is not ours to take back.
    answers[0] = answers[0].removeprefix("before")
    assert [json.loads(line)["id"] for line in answers] == [1, 2]
    assert "a library prints" in errors
    assert "and one that is not Python" in errors
    assert "a child, too" in errors
    assert code == 0


def test_half_an_emoji_in_a_document_ends_neither_the_answer_nor_the_session(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data") as app:
        app.documents.save("日记", "周一", "钥匙 \ud83d 在抽屉里")
        app.documents.flush(120)
    shown = "钥匙 \ufffd 在抽屉里"

    async def ask(client: Client) -> None:
        [content] = (await client.read_resource(document_uri("日记", "周一"))).contents
        assert isinstance(content, TextResourceContents)
        assert content.text == shown
        for arguments in ({"query": "钥匙"}, {"query": "where is the key", "mode": "semantic", "min_score": 0}):
            found = await client.call_tool("search_documents", arguments)
            assert data_of(found)["hits"][0]["text"] == shown
            assert shown in text_of(found)

    with_client(started(tmp_path / "data"), ask)


def test_a_client_that_speaks_nonsense_is_answered_and_the_next_line_counts(data: Path) -> None:
    lines = [*map(json.dumps, HELLO), "{oops", json.dumps(asked(7, "recall", query="灯塔"))]
    answers, _, code = spoken(lines, 2, "mcp", "--data", str(data))
    last = json.loads(answers[-1])
    assert (last["id"], last["result"].get("isError", False), code) == (7, False, 0)


def test_what_was_remembered_survives_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "data"
    process = start(
        ["mcp", "--data", str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for message in [*HELLO, asked(2, "remember", text="发票在每月第一个工作日开出")]:
        process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.communicate()
    assert answers[1]["result"]["structuredContent"]["collection"] == "knowledge"
    found = data_of(call(started(data), "recall", query="什么时候开发票"))["hits"]
    assert [memory["text"] for memory in found] == ["发票在每月第一个工作日开出"]


def test_a_wrong_setting_is_told_on_standard_error_and_by_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run(["mcp"], env=environment() | {"HOMING_SEARCH__RRF_K": "many"})
    assert done.returncode == 3
    assert done.stdout == ""
    assert "search.rrf_k" in done.stderr
