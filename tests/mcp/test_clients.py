"""`homing mcp install`: entries that the clients understand, in files that keep everything else."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.errors import ConfigError, InvalidArgument, NotFound
from homing.mcp.client_files import put_json, read_json
from homing.mcp.clients import CLIENTS, Local, Remote, block_for, blocks, install
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
        ("windsurf", "mcpServers", "serverUrl"),
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
    with pytest.raises(InvalidArgument, match="leave out --token"):
        block_for("zed", THERE)
    assert set(CLIENTS) - {block.client for block in blocks(THERE)} == {"claude-desktop", "zed"}


ZED = """// 我的设置
{
  "theme": "One", // nice
  "context_servers": {
    "other": {"command": "x", "args": ["// no comment", "a,]"]}, // the last one
  },
  /* the end */
}
"""
CODEX = """model = "o9"  # fast

[mcp_servers.homing]
command = "old"
startup_timeout_sec = 20

# Mine.
[mcp_servers.other]
command = "y\""""


def test_comments_order_and_other_servers_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(ZED, encoding="utf-8")
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    done = install("zed", HERE, link)
    text = file.read_text(encoding="utf-8")
    kept = [line for line in text.splitlines() if line in ZED.splitlines()]
    assert (done.changed, kept) == (True, ZED.splitlines())
    assert read_json(text)["context_servers"]["homing"]["command"] == HERE.command
    assert read_json(text)["context_servers"]["other"]["args"] == ["// no comment", "a,]"]
    assert (link.is_symlink(), file.stat().st_mode & 0o777) == (True, 0o640)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.json", "settings.json"]


def test_an_entry_of_toml_is_replaced_in_its_place(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(CODEX.replace("\n", "\r\n").encode())
    assert install("codex", HERE, file).changed
    text = file.read_bytes().decode()
    assert "\n" not in text.replace("\r\n", "")
    found = tomllib.loads(text)["mcp_servers"]
    assert found["homing"] == {"command": HERE.command, "args": list(HERE.arguments), "startup_timeout_sec": 20}
    assert found["other"] == {"command": "y"}
    assert text.startswith('model = "o9"  # fast')
    assert "# Mine.\r\n[mcp_servers.other]" in text


@pytest.mark.parametrize("client", CLIENTS)
def test_the_second_time_changes_nothing_and_another_server_takes_the_place_of_the_first(
    client: str, tmp_path: Path
) -> None:
    file = tmp_path / "new folder" / "config"
    assert not block_for(client, HERE, file).installed
    assert install(client, HERE, file).changed
    before = file.read_bytes()
    again = install(client, HERE, file)
    assert (again.changed, again.installed, file.read_bytes()) == (False, True, before)
    other = Local("/usr/bin/homing", ("mcp",)) if client in ("claude-desktop", "zed") else THERE
    assert install(client, other, file).changed
    now = block_for(client, HERE, file)
    assert (now.installed, now.serves) == (False, THERE.url if other is THERE else "/usr/bin/homing mcp")
    text = file.read_text(encoding="utf-8")
    assert HERE.command not in text
    assert not install(client, other, file).changed


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{"mcpServers": {'),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": null}'),
        ("codex", "mcp_servers = {homing = {command = 'x'}}"),
        ("codex", "[mcp_servers.homing]\nenv = {A = 'b'}\n"),
        ("codex", "]"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_left_alone(client: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"left as it is.*--print"):
        install(client, HERE, file)
    assert file.read_text(encoding="utf-8") == text
    assert [one.name for one in tmp_path.iterdir()] == ["config"]


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from([None, 2, "\t"]),
)
def test_whatever_else_json_holds_stays(value: object, indent: int | str | None) -> None:
    text = json.dumps({"mine": value}, indent=indent, ensure_ascii=False)
    once = put_json(text, ("servers", "homing"), {"command": "x"})
    assert json.loads(once) == {"mine": value, "servers": {"homing": {"command": "x"}}}
    twice = put_json(put_json(once, ("mine",), 1), ("servers", "homing"), "y")
    assert json.loads(twice) == {"mine": 1, "servers": {"homing": "y"}}


@pytest.mark.slow
def test_the_command_sets_up_the_client_of_this_user(tmp_path: Path) -> None:
    home = os.environ | {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    looked = run(["mcp", "install", "cursor", "--print"], cwd=tmp_path, env=home)
    file = tmp_path / ".cursor" / "mcp.json"
    assert (str(file) in looked.stdout, file.exists()) == (True, False)
    done = run(["mcp", "install", "cursor", "--data", "数据", "--json"], cwd=tmp_path, env=home)
    [block] = json.loads(done.stdout)
    assert (block["file"], block["installed"], block["changed"]) == (str(file), True, True)
    listed = json.loads(run(["mcp", "install", "--data", "数据", "--json"], cwd=tmp_path, env=home).stdout)
    assert [one["client"] for one in listed if one["installed"]] == ["cursor"]
    entry = json.loads(file.read_text(encoding="utf-8"))["mcpServers"]["homing"]
    assert entry["args"][-1] == str(tmp_path / "数据")
    started = subprocess.run([entry["command"], *entry["args"]], input="", capture_output=True, timeout=300)
    assert (started.returncode, started.stdout) == (0, b"")
