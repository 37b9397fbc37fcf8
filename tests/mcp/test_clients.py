"""`homing mcp install`: blocks that the clients understand."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from homing.errors import InvalidArgument, NotFound
from homing.mcp.clients import CLIENTS, Local, Remote, block_for, blocks
from tests.forked import run

HERE = Local("/opt/家/bin/homing", ("mcp", "--data", '/data/"q"'))
THERE = Remote("http://127.0.0.1:8765/mcp", token=True)


def parsed(client: str, server: Local | Remote) -> dict[str, object]:
    block = block_for(client, server)
    found: dict[str, object] = tomllib.loads(block.text) if block.language == "toml" else json.loads(block.text)
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_a_local_server_is_started_with_its_arguments(client: str) -> None:
    [section] = parsed(client, HERE).values()
    assert isinstance(section, dict)
    entry = section["homing"]
    assert (entry["command"], entry["args"]) == (HERE.command, list(HERE.arguments))


@pytest.mark.parametrize(
    ("client", "section", "address"),
    [
        ("claude-code", "mcpServers", "url"),
        ("cursor", "mcpServers", "url"),
        ("vscode", "servers", "url"),
        ("codex", "mcp_servers", "url"),
        ("gemini", "mcpServers", "httpUrl"),
    ],
)
def test_a_running_server_is_reached_at_its_address(client: str, section: str, address: str) -> None:
    entry = parsed(client, THERE)[section]
    assert isinstance(entry, dict)
    assert entry["homing"][address] == THERE.url


def test_no_block_holds_a_token_but_each_says_where_it_comes_from() -> None:
    for block in blocks(THERE):
        assert "HOMING_TOKEN" in block.text or "input:homing-token" in block.text
    assert all("Authorization" not in block.text for block in blocks(Remote(THERE.url)))


def test_what_cannot_be_done_says_what_can() -> None:
    with pytest.raises(NotFound, match="claude-desktop, claude-code, cursor"):
        block_for("emacs", HERE)
    with pytest.raises(InvalidArgument, match="leave out --url"):
        block_for("claude-desktop", THERE)
    assert "claude-desktop" not in {block.client for block in blocks(THERE)}


@pytest.mark.slow
def test_the_command_that_is_printed_starts_the_server(tmp_path: Path) -> None:
    done = run(["mcp", "install", "cursor", "--data", "数据", "--json"], cwd=tmp_path)
    [block] = json.loads(done.stdout)
    entry = json.loads(block["text"])["mcpServers"]["homing"]
    assert entry["args"][-1] == str(tmp_path / "数据")
    started = subprocess.run([entry["command"], *entry["args"]], input="", capture_output=True, timeout=300)
    assert (started.returncode, started.stdout) == (0, b"")
