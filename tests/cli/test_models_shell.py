"""`homing models` and `homing providers` as people meet them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.testing.loopback import LoopbackApi
from tests.cli.shell import Shell

pytestmark = pytest.mark.slow

KEY = "sk-shell-0815"


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    with LoopbackApi(key=KEY) as api:
        yield api


@pytest.fixture
def shell(tmp_path: Path, api: LoopbackApi) -> Shell:
    shell = Shell(tmp_path)
    added = shell("providers", "add", "oai", "--type", "openai", "--base-url", api.url + "/v1", stdin=KEY + "\n")
    assert added.returncode == 0, added.stderr
    added = shell("models", "add", "text-embedding-3-small", "--provider", "oai", "--dimensions", "512")
    assert added.returncode == 0, added.stderr
    return shell


def test_a_key_is_read_from_standard_input_and_never_shown(shell: Shell) -> None:
    [listed] = [one for one in shell.json("providers", "list") if one["name"] == "oai"]
    assert listed["key"] == "set"
    shown = "".join(
        done.stdout + done.stderr
        for done in (
            shell("providers", "list"),
            shell("-v", "models", "list"),
            shell("-v", "models", "test", "text-embedding-3-small"),
            shell("config", "show"),
            shell("providers", "add", "oai", "--type", "openai", stdin=KEY + "\n"),
            shell("providers", "remove", "oai"),
        )
    )
    assert KEY not in shown
    assert "in use by text-embedding-3-small" in shown


def test_a_key_may_be_a_variable_that_is_read_when_it_is_used(shell: Shell, api: LoopbackApi) -> None:
    arguments = ("--type", "openai", "--base-url", api.url + "/v1", "--key-variable", "MY_KEY")
    assert shell("providers", "add", "second", *arguments).returncode == 0
    assert {"name": "second", "key": "${MY_KEY}"}.items() <= shell.json("providers", "list")[-1].items()
    missing = shell("models", "add", "text-embedding-3-large", "--provider", "second")
    assert missing.returncode == 4
    assert "${MY_KEY}" in missing.stderr
    assert [one["name"] for one in shell.json("models", "list")["models"]] == [
        "all-MiniLM-L6-v2-zh",
        "text-embedding-3-small",
    ]
    assert shell("models", "add", "text-embedding-3-large", "--provider", "second", MY_KEY=KEY).returncode == 0
    told = shell.json("models", "test", "text-embedding-3-large", MY_KEY=KEY)
    assert (told["model"], told["dimensions"]) == ("openai/text-embedding-3-large@3072", 3072)


def test_the_model_in_use_changes_and_changes_back(shell: Shell) -> None:
    assert [one["name"] for one in shell.json("models", "list")["models"] if one["default"]] == ["all-MiniLM-L6-v2-zh"]
    changed = shell.json("models", "default", "text-embedding-3-small")
    assert (changed["default"], changed["finished"]) == ("openai/text-embedding-3-small@512", True)
    assert [one["name"] for one in shell.json("models", "list")["models"] if one["default"]] == [
        "text-embedding-3-small"
    ]
    assert shell.json("embed", "打开灯")["model"] == "openai/text-embedding-3-small@512"
    assert "text-embedding-3-small@512" in shell("models", "status").stdout
    refused = shell("models", "remove", "text-embedding-3-small")
    assert refused.returncode == 3
    assert "make another the default first" in refused.stderr
    assert shell.json("models", "rollback")["default"] == "local/all-MiniLM-L6-v2-zh:4@384"
    assert shell("models", "remove", "text-embedding-3-small").returncode == 0
    assert shell("providers", "remove", "oai").returncode == 0
    assert shell.json("models", "discard") == {"discarded": 0}


def test_a_model_in_the_settings_wins_and_the_command_says_so(shell: Shell) -> None:
    assert shell.json("models", "default", "text-embedding-3-small")["finished"]
    told = shell.json("embed", "x", HOMING_EMBEDDING__PROVIDER="bundled")
    assert told["model"] == "local/all-MiniLM-L6-v2-zh:4@384"
    refused = shell("models", "default", "all-MiniLM-L6-v2-zh", HOMING_EMBEDDING__PROVIDER="bundled")
    assert refused.returncode == 3
    assert "homing.toml" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("models", "default", "no-such-model"), 3, "homing models add"),
        (("models", "add", "m", "--provider", "nobody"), 3, "there are: oai, local"),
        (("models", "add", "unknown-width", "--provider", "oai"), 3, "pass dimensions"),
        (("providers", "add", "x", "--type", "opnai", "--no-key"), 3, "known:"),
        (("models", "rollback"), 3, "no earlier model"),
    ],
)
def test_mistakes_say_what_to_do(shell: Shell, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = shell(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
