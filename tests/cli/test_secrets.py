"""No output of any command, no log, no error and no file but the one for keys shows a key or a password."""

from __future__ import annotations

import io
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer

import homing
from homing.cli import main
from homing.config import Settings, load
from homing.errors import InvalidArgument, StoreError, hide_passwords
from homing.models.keys import Keys, is_reference
from homing.server.log_lines import JsonLines, ShortLines
from homing.stores import open_store
from tests.forked import run

PLANTED = "planted-5ecret"
UNREACHABLE = f"http://lin:{PLANTED}@127.0.0.1:9"
TOML = f"""
proxy = "{UNREACHABLE}"
[embedding]
provider_id = "own"
model = "text-embedding-3-small"
[search]
deadline = 0.05
[providers.own]
type = "openai"
api_key = "sk-{PLANTED}"
base_url = "{UNREACHABLE}/v1"
"""
STORE = f"postgresql://lin:{PLANTED}@127.0.0.1:9/none"
ARGUMENTS: dict[str, list[str]] = {
    "search": ["灯塔", "."], "embed": ["灯塔"], "eval": ["questions.jsonl"], "doctor": ["--live"], "where": [],
    "repair": [], "demo": [], "serve": ["--host", "0.0.0.0"], "worker": [], "docs": [],
    "bulk": ["rows.jsonl", "--into", "articles"], "backup": ["copy"], "restore": ["copy"],
    "skills scan": ["."], "skills find": ["灯塔"], "skills list": [], "skills prompt": ["灯塔"],
    "devices load": ["home.json"], "devices list": [], "devices ask": ["开灯"], "devices repl": [],
    "devices eval": ["home.json"],
    "memory remember": ["灯塔"], "memory recall": ["灯塔"], "memory list": [], "memory forget": ["x"],
    "memory queue": ["--retry"], "memory reindex": [],
    "documents add": ["novel", "ch1", "notes.md"], "documents import": ["novel", "."], "documents list": [],
    "documents show": ["novel", "ch1"], "documents search": ["novel", "灯塔"],
    "documents rename": ["novel", "ch1", "ch2"],
    "documents move": ["novel", "ch2", "other"], "documents remove": ["other", "ch2"], "documents reindex": [],
    "knowledge upload": ["notes.md"], "knowledge search": ["灯塔"], "knowledge list": [], "knowledge embed": [],
    "knowledge delete": ["notes.md"],
    "models list": [], "models add": ["text-embedding-3-small", "--provider", "second"], "models test": [],
    "models calibrate": ["text-embedding-3-small"], "models default": ["text-embedding-3-small"], "models status": [],
    "models rollback": [], "models discard": [], "models remove": ["text-embedding-3-small"],
    "models pull": ["all-MiniLM-L6-v2"],
    "providers list": [], "providers add": ["third", "--type", "openai", "--base-url", UNREACHABLE, "--no-key"],
    "providers key": ["second"], "providers remove": ["second"],
    "store copy": [STORE, "sqlite:///copy.db"],
    "postgres start": ["--data", "notes.md"], "postgres stop": [], "postgres status": [],
    "ipc": [], "ipc schema": [], "mcp": [], "mcp install": ["cursor"],
    "tokens create": [], "tokens rotate": ["x"], "tokens list": [], "tokens revoke": ["x"], "config show": [],
}  # fmt: skip
"""Arguments for every command, in an order in which later ones find what earlier ones made."""
ENDS_ITS_PROCESS = ("ipc", "mcp")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "homing.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "notes.md").write_text("# 灯塔\n\nA lighthouse.", encoding="utf-8")
    (tmp_path / "home.json").write_text('{"devices": [{"id": "a", "name": "灯", "type": "light"}]}', encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "text": "灯塔"}\n', encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text('{"query": "灯塔", "relevant": ["a"]}\n', encoding="utf-8")
    monkeypatch.setenv("HOMING_DATA", str(tmp_path / "data"))
    # Whatever pip says of an index with a password is part of what a command prints.
    monkeypatch.setenv("PIP_INDEX_URL", f"{UNREACHABLE}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return tmp_path


def commands(group: Any, path: tuple[str, ...] = ()) -> list[str]:
    if not isinstance(group, typer.core.TyperGroup):
        return [" ".join(path)]
    found = [one for name, inner in group.commands.items() for one in commands(inner, (*path, name))]
    return [" ".join(path), *found] if group.invoke_without_command and path else found


def test_every_command_is_tried() -> None:
    assert sorted(commands(typer.main.get_command(main.app))) == sorted(ARGUMENTS)


def told(monkeypatch: pytest.MonkeyPatch, *asked: str, typed: str = "") -> str:
    """All that a command prints, with its errors."""
    monkeypatch.setattr(sys, "argv", ["homing", *asked])
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    printed = io.StringIO()
    with logging_restored(), redirect_stdout(printed), redirect_stderr(printed), pytest.raises(SystemExit):
        main.run()
    return printed.getvalue()


@contextmanager
def logging_restored() -> Iterator[None]:
    """Servers set up logging for a process that is theirs alone."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    named = {name: logging.getLogger(name) for name in ("homing", "homing.server", "uvicorn", "httpx2", "mcp")}
    levels = {name: one.level for name, one in named.items()}
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, one in named.items():
            one.setLevel(levels[name])


@pytest.mark.slow
@pytest.mark.parametrize("store", ["", STORE], ids=["folder", "server"])
def test_no_command_prints_or_logs_a_key_or_a_password(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, store: str
) -> None:
    caplog.set_level(logging.DEBUG, "homing")
    told(monkeypatch, "providers", "add", "remote", "--type", "openai", typed=f"sk-{PLANTED}\n")
    told(monkeypatch, "providers", "add", "second", "--type", "openai", "--base-url", f"{UNREACHABLE}/v1", "--no-key")
    listed = told(monkeypatch, "providers", "list", "--json")
    assert "remote" in listed
    assert "lin:***@127.0.0.1" in listed
    if store:
        monkeypatch.setenv("HOMING_STORE", store)
    for command, arguments in ARGUMENTS.items():
        if command == "worker" and not store:
            # It prints where it works, and goes on until it is stopped.
            continue
        for extra in (["--json"],) if store else ([], ["--json"]):
            asked = [*command.split(), *arguments, *extra]
            if command in ENDS_ITS_PROCESS:
                ended = run(asked, cwd=home, env=dict(os.environ))
                assert PLANTED not in ended.stdout + ended.stderr, command
            else:
                assert PLANTED not in told(monkeypatch, *asked), command
    assert PLANTED not in caplog.text


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


@pytest.mark.parametrize(("mode", "holds"), [(0o755, "index.html"), (0o1777, "homing.db")])
def test_a_folder_that_is_not_ours_alone_is_left_as_it_was(tmp_path: Path, mode: int, holds: str) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / holds).touch()
    shared.chmod(mode)
    open_store(shared / "notes.db").close()
    assert stat.S_IMODE(shared.stat().st_mode) == mode
    assert stat.S_IMODE((shared / "notes.db").stat().st_mode) == 0o600


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
