"""The shell as a whole: every command has `--json`, prints what the documents say, and starts quickly."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import pytest
from pydantic import TypeAdapter, ValidationError
from typer.testing import CliRunner

import homing
from homing.cli.json_types import commands, json_types
from homing.cli.main import app
from homing.cli.reports import Failed
from tests.cli.shell import Shell
from tests.skills.folders import front, write_skill

DESIGN = (
    "skills scan",
    "skills find",
    "skills list",
    "documents add",
    "documents search",
    "documents reindex",
    "memory remember",
    "memory recall",
    "devices load",
    "devices ask",
    "models list",
    "models add",
    "models default",
    "models pull",
    "embed",
    "search",
    "where",
    "eval",
    "doctor",
    "serve",
    "ipc",
    "mcp",
    "demo",
)
WITHOUT = {
    "devices repl": "a conversation with a person",
    "ipc": "speaks JSON-RPC",
    "ipc schema": "prints JSON anyway",
    "mcp": "speaks JSON-RPC",
}
"""Commands without `--json`, and why."""
ELSEWHERE = {
    "serve": "runs until it is stopped",
    "worker": "runs until it is stopped",
    "demo": "has tests of its own",
    "models pull": "fetches from a registry",
    "models rollback": "needs a second model",
    "postgres start": "needs a server",
    "postgres stop": "needs a server",
}
"""Commands whose JSON is not looked at here, and why."""


ALL = dict(commands())
TYPES = json_types()


def fits(printed: str, kind: Any) -> bool:
    """Whether JSON is of a type: nothing is missing, nothing more is there."""
    try:
        found = TypeAdapter(kind).validate_json(printed)
    except ValidationError:
        return False
    return bool(TypeAdapter(kind).dump_python(found, mode="json") == json.loads(printed))


def test_every_command_of_the_design_is_there() -> None:
    assert set(DESIGN) <= set(ALL)


def test_every_command_has_json_whose_shape_is_declared_or_says_why_not() -> None:
    assert set(TYPES) | set(WITHOUT) == set(ALL)
    for name in TYPES:
        assert "--json" in {option for parameter in ALL[name].params for option in parameter.opts}, name


def test_every_line_of_a_list_of_commands_is_whole() -> None:
    for name, command in ALL.items():
        short = command.get_short_help_str(limit=60)
        assert short, name
        assert not short.endswith("..."), name


def test_every_option_says_what_it_is_for() -> None:
    for name, command in ALL.items():
        for parameter in command.params:
            assert getattr(parameter, "help", "") or parameter.name == "help", f"{name} {parameter.name}"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_skill(tmp_path / "skills", "a", front("git-commit", "写提交信息", "先看 diff", license="MIT"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "灯塔.md").write_text("他一个人守着灯塔。", encoding="utf-8")
    rows = [{"id": "a", "text": "提交代码"}, {"query": "commit", "expected": ["a"]}, {"query": "x", "expected": []}]
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    home = {"devices": [{"id": "l", "name": "灯", "type": "light", "room": "客厅"}]}
    (tmp_path / "home.json").write_text(json.dumps(home), encoding="utf-8")
    sentence = {"text": "打开客厅的灯", "decision": "act", "devices": ["l"]}
    (tmp_path / "eval.jsonl").write_text(json.dumps(sentence), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


SESSION: tuple[tuple[str, ...], ...] = (
    ("search", "灯塔", "notes"),
    ("search", "灯塔"),
    ("where",),
    ("embed", "打开", "关闭"),
    ("eval", "g.jsonl"),
    ("doctor",),
    ("skills", "scan", "skills"),
    ("skills", "find", "提交代码"),
    ("skills", "list"),
    ("skills", "prompt", "提交代码"),
    ("devices", "load", "home.json"),
    ("devices", "list"),
    ("devices", "ask", "把客厅的灯调到50%"),
    ("devices", "eval", "."),
    ("memory", "remember", "用户不吃辣", "--id", "x", "--tag", "food"),
    ("memory", "recall", "点菜"),
    ("memory", "list"),
    ("memory", "list", "knowledge"),
    ("memory", "queue"),
    ("memory", "reindex"),
    ("memory", "forget", "knowledge", "x"),
    ("docs", "mcp"),
    ("documents", "add", "p", "d", "notes/灯塔.md"),
    ("documents", "import", "p", "notes"),
    ("documents", "list"),
    ("documents", "list", "p"),
    ("documents", "show", "p", "d"),
    ("documents", "search", "p", "灯塔", "--mode", "hybrid"),
    ("documents", "reindex"),
    ("documents", "rename", "p", "d", "e"),
    ("documents", "move", "p", "e", "q"),
    ("documents", "remove", "q", "e"),
    ("knowledge", "upload", "notes/灯塔.md", "g.jsonl"),
    ("knowledge", "search", "灯塔"),
    ("knowledge", "list"),
    ("knowledge", "embed"),
    ("knowledge", "delete", "灯塔.md"),
    ("models", "list"),
    ("models", "status"),
    ("models", "test"),
    ("models", "calibrate", "all-MiniLM-L6-v2-zh"),
    ("models", "default", "all-MiniLM-L6-v2-zh"),
    ("models", "discard"),
    ("providers", "add", "mine", "--type", "ollama"),
    ("providers", "list"),
    ("providers", "key", "mine"),
    ("models", "add", "m", "--provider", "mine", "--dimensions", "8"),
    ("models", "remove", "m"),
    ("providers", "remove", "mine"),
    ("store", "copy", "sqlite:///data/homing.db", "sqlite:///copy.db"),
    ("postgres", "status"),
    ("mcp", "install"),
    ("tokens", "create"),
    ("tokens", "list"),
    ("config", "show"),
    ("bulk", "g.jsonl", "--into", "rows", "--workers", "1"),
    ("repair",),
    ("backup", "saved"),
    ("restore", "saved", "--data", "again"),
)


@pytest.mark.slow
@pytest.mark.usefixtures("place")
def test_what_every_command_prints_has_the_type_that_is_documented() -> None:
    runner = CliRunner()
    seen = set()
    for arguments in SESSION:
        name = next(" ".join(arguments[:length]) for length in (2, 1) if " ".join(arguments[:length]) in TYPES)
        done = runner.invoke(app, [*arguments, "--json"], catch_exceptions=False)
        assert done.stdout, (arguments, done.stderr)
        assert any(fits(done.stdout, kind) for kind in TYPES[name]), (name, done.stdout)
        seen.add(name)
    [token] = json.loads(runner.invoke(app, ["tokens", "list", "--json"]).stdout)
    for command in ("tokens rotate", "tokens revoke"):
        done = runner.invoke(app, [*command.split(), token["id"], "--json"])
        assert fits(done.stdout, TYPES[command][0])
        seen.add(command)
    assert seen | set(ELSEWHERE) == set(TYPES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"), [(("memory", "forget", "knowledge", "none"), 3), (("memory", "recall"), 2)]
)
def test_a_failure_has_its_type_too(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    done = Shell(tmp_path)(*arguments, "--json")
    assert done.returncode == code
    assert fits(done.stdout, Failed)


def test_what_is_not_as_declared_is_noticed() -> None:
    good = {"model": "m", "dimensions": 1, "vectors": [[1.0]]}
    assert fits(json.dumps(good), TYPES["embed"][0])
    assert not fits(json.dumps(good | {"more": 1}), TYPES["embed"][0])
    assert not fits(json.dumps(good | {"dimensions": "x"}), TYPES["embed"][0])
    assert not fits(json.dumps({"model": "m"}), TYPES["embed"][0])


HEAVY = ("numpy", "pydantic", "onnxruntime", "rich", "asyncio", "lancedb", "mcp", "fastapi", "httpx2")


def test_the_shell_starts_without_what_only_some_commands_need() -> None:
    code = f"import sys, homing.cli.main; print(*set(sys.modules) & set({HEAVY!r}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_a_search_loads_neither_other_commands_nor_what_understands_sentences_to_a_home(tmp_path: Path) -> None:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*(one for one in sys.modules if one.startswith('homing.'))))\n"
        "from homing.cli.main import run; run()"
    )
    command = [sys.executable, "-c", code, "search", "loneliness", "--data", str(tmp_path)]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert {"homing.cli.search", "homing.operations.search"} <= loaded
    assert not {"homing.cli.skills", "homing.devices.parsing", "homing.skills.scanning"} & loaded


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(tmp_path: Path, kind: str) -> None:
    shell = Shell(tmp_path)
    instructions = {"bash": "complete_bash", "zsh": "complete_zsh", "fish": "complete_fish"}[kind]

    def completed(words: str) -> str:
        variables = {
            "_HOMING_COMPLETE": instructions,
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_TYPER_COMPLETE_WORD_TO_COMPLETE": words.rsplit(" ", 1)[-1],
        }
        return shell(**variables).stdout

    assert "skills" in completed("homing sk")
    assert "find" in completed("homing skills f")
    assert "--threshold" in completed("homing skills find --thr")


TYPED = {
    "homing sk": "homing skills",
    "homing mcp install curs": "homing mcp install cursor",
    "homing docs doc": "documents",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bash", "zsh"])
def test_one_command_installs_completion_in_a_real_shell(tmp_path: Path, kind: str) -> None:
    program = shutil.which(kind)
    if program is None:
        pytest.skip(f"no {kind} on this machine")
    source = Path(homing.__file__).parent.parent
    (tmp_path / "homing").write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"sys.path.insert(0, {str(source)!r})\n"
        "from homing.cli.main import run\nrun()\n",
        encoding="utf-8",
    )
    (tmp_path / "homing").chmod(0o755)
    environ = os.environ | {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "TERM": "dumb",
    }
    environ = {name: value for name, value in environ.items() if name not in ("BASH_ENV", "ZDOTDIR", "PROMPT_COMMAND")}
    installed = subprocess.run([program, "-c", "homing --install-completion; true"], env=environ, capture_output=True)
    assert installed.returncode == 0, installed.stderr
    with Typist([program, "-i"], environ) as shell:
        # What is typed before a shell listens is no completion.
        shell.type("echo rea''dy\n")
        shell.wait_for("ready")
        if kind == "zsh":
            # It loads what completes a command when that is first wanted, and completes from then on.
            shell.type("homing \t\x15")
        for typed, completed in TYPED.items():
            shell.type(f"{typed}\t")
            shell.wait_for(completed)
            shell.type("\x15")


class Typist:
    """A shell on a terminal of its own, and somebody who types."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self._screen, terminal = os.openpty()
        self._process = subprocess.Popen(
            command, env=environ, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
        )
        os.close(terminal)
        self._seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._screen)

    def type(self, keys: str) -> None:
        self._seen = ""
        os.write(self._screen, keys.encode())

    def wait_for(self, text: str) -> None:
        while text not in self._seen:
            assert select.select([self._screen], [], [], 60)[0], self._seen
            self._seen += os.read(self._screen, 4096).decode(errors="replace")
