"""No output of any command, no log, no error and no file but the one for keys shows a key or a password."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import homing
from homing.cli.main import app as shell
from homing.config import Settings, load
from homing.errors import InvalidArgument, StoreError, hide_passwords
from homing.models.keys import Keys, is_reference
from homing.server.log_lines import JsonLines, ShortLines
from homing.stores import open_store

PLANTED = "planted-5ecret"
TOML = f"""
proxy = "http://lin:{PLANTED}@proxy.example:3128"
[providers.own]
type = "openai"
api_key = "sk-{PLANTED}"
base_url = "https://lin:{PLANTED}@api.example/v1"
"""
STARTS = {"serve", "ipc", "mcp", "worker", "demo", "bulk", "evaluate", "pull", "watch", "start", "edit"}
"""Commands that serve, wait, or fetch, and are tested where they belong."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "homing.toml").write_text(TOML, encoding="utf-8")
    monkeypatch.setenv("HOMING_DATA", str(tmp_path / "data"))
    return tmp_path


def commands(group: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(group, typer.core.TyperGroup):
        return [path]
    return [found for name, one in group.commands.items() for found in commands(one, (*path, name))]


@pytest.mark.slow
def test_no_command_prints_a_key_or_a_password(home: Path) -> None:
    runner = CliRunner()
    key = runner.invoke(shell, ["providers", "add", "remote", "--type", "openai"], input=f"sk-{PLANTED}\n")
    assert key.exit_code == 0, key.output
    address = f"https://lin:{PLANTED}@api.example/v1"
    second = ["providers", "add", "second", "--type", "openai", "--base-url", address, "--no-key"]
    assert runner.invoke(shell, second).exit_code == 0
    tried = [one for one in commands(typer.main.get_command(shell)) if not STARTS.intersection(one)]
    assert len(tried) > 20
    for one in tried:
        for extra in ([], ["--json"], ["x", "y"]):
            done = runner.invoke(shell, [*one, *extra], input="")
            assert PLANTED not in done.output, one
            assert PLANTED not in str(done.exception or ""), one


def test_the_database_has_a_reference_and_a_file_that_nobody_else_reads_has_the_key(home: Path) -> None:
    with homing.open(home / "data", settings=Settings()) as app:
        provider = app.models.config.create_provider("remote", "openai", api_key=f"sk-{PLANTED}")
        assert is_reference(provider.api_key.reveal())
    for file in (home / "data").rglob("*"):
        if file.is_file():
            assert (PLANTED.encode() in file.read_bytes()) is (file.name == "keys.json"), file
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE((home / "data").stat().st_mode) == 0o700


def test_what_was_open_before_is_closed(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        app.add({"a": "灯塔 lamp"})
    os.chmod(tmp_path / "data", 0o755)
    for file in (tmp_path / "data").iterdir():
        file.chmod(0o644)
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        assert [hit.id for hit in app.search("灯塔")] == ["a"]
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "data").glob("*.db*")} == {0o600}


def test_keys_are_found_by_their_reference_and_refused_where_they_have_no_place(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json", lambda value: f"from the environment: {value}")
    first, second = keys.keep("sk-one"), keys.keep("sk-two")
    assert (keys.refer(first), keys.refer(second)) == ("sk-one", "sk-two")
    assert keys.keep("${VARIABLE}") == "${VARIABLE}"
    assert keys.refer("${VARIABLE}") == "from the environment: ${VARIABLE}"
    with pytest.raises(InvalidArgument, match="VARIABLE"):
        Keys(None, str).keep("sk-one")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://lin:pa@ss@db/x is down", "postgresql://lin:***@db/x is down"),
        ("postgresql://db/x?user=lin&password=pass&a=b", "postgresql://db/x?user=lin&password=***&a=b"),
        ("代理 http://林:密码@proxy:3128 连不上", "代理 http://林:***@proxy:3128 连不上"),
        ("https://api.example/v1/a@b:c", "https://api.example/v1/a@b:c"),
        ("no address: a:b@c", "no address: a:b@c"),
    ],
)
def test_passwords_in_addresses_are_masked(text: str, shown: str) -> None:
    assert hide_passwords(text) == shown
    assert InvalidArgument(text, details={"url": text}).details["url"] == shown


def test_settings_errors_and_logs_mask_the_password_of_a_store(home: Path) -> None:
    url = f"postgresql://lin:{PLANTED}@127.0.0.1:9/none"
    rows = list(load(environ={"HOMING_STORE": url}).rows())
    assert PLANTED not in str(rows)
    with pytest.raises(StoreError) as raised:
        open_store(url)
    assert PLANTED not in str(raised.value) + str(raised.value.details)
    record = logging.LogRecord("homing", logging.WARNING, "", 0, "cannot reach %s", (url,), None)
    assert PLANTED not in JsonLines().format(record) + ShortLines().format(record)
