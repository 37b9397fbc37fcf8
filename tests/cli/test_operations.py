"""Every command that is an operation prints with `--json` what the operation answers in Python."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import homing
from homing.cli.json_types import operations
from homing.cli.main import app as command
from homing.cli.output import exit_code
from homing.config import Settings
from homing.errors import HomingError
from homing.operations import OPERATIONS, Call
from tests.cli.shell import Shell
from tests.cli.test_commands import ALL
from tests.skills.folders import front, write_skill

pytestmark = pytest.mark.slow

LAMP = {"id": "lamp", "name": "主灯", "type": "light", "room": "客厅"}
SKILLS = "SKILLS"
"""Stands for the folder with the skills."""

CALLS = operations()

# A command, the operation that it is, and what that is given.
EXAMPLES: list[tuple[str, str, dict[str, Any]]] = [
    ("documents list", "list_projects", {}),
    ("documents list novel", "list_documents", {"project": "novel"}),
    ("documents list novel -n 1 --offset 1", "list_documents", {"project": "novel", "limit": 1, "offset": 1}),
    ("documents list 无", "list_documents", {"project": "无"}),
    ("documents search novel 孤独的感觉", "search_documents", {"project": "novel", "query": "孤独的感觉"}),
    (
        "documents search novel market --mode keyword -n 1",
        "search_documents",
        {"project": "novel", "query": "market", "mode": "keyword", "limit": 1},
    ),
    (
        "documents search novel 燈塔 --min-score 0 --document ch1",
        "search_documents",
        {"project": "novel", "query": "燈塔", "min_score": 0.0, "document": "ch1"},
    ),
    ("documents search 无 灯塔", "search_documents", {"project": "无", "query": "灯塔"}),
    ("documents show novel ch1", "get_document", {"project": "novel", "document": "ch1"}),
    ("documents show novel ch9", "get_document", {"project": "novel", "document": "ch9"}),
    ("documents show novel ch1 --chunks", "list_chunks", {"project": "novel", "document": "ch1"}),
    (
        "documents add novel ch3 story.md",
        "save_document",
        {"project": "novel", "document": "ch3", "text": "海很安静。"},
    ),
    ("documents rename novel ch1 ch9", "rename_document", {"project": "novel", "document": "ch1", "name": "ch9"}),
    ("documents rename novel ch1 ch2", "rename_document", {"project": "novel", "document": "ch1", "name": "ch2"}),
    ("documents move novel ch1 archive", "move_document", {"project": "novel", "document": "ch1", "to": "archive"}),
    ("documents remove novel ch1", "delete_document", {"project": "novel", "document": "ch1"}),
    ("documents remove novel ch9", "delete_document", {"project": "novel", "document": "ch9"}),
    ("documents remove novel --yes", "delete_project", {"project": "novel"}),
    ("memory recall 点菜要注意什么", "recall", {"query": "点菜要注意什么"}),
    (
        "memory recall invoices --in knowledge -n 1 --mode keyword",
        "recall",
        {"query": "invoices", "collections": ["knowledge"], "limit": 1, "mode": "keyword"},
    ),
    ("memory recall 点菜 --session s1", "recall", {"query": "点菜", "session_key": "s1"}),
    ("memory list", "list_memories", {}),
    ("memory list observation -n 1", "list_memories", {"collection": "observation", "limit": 1}),
    ("memory forget knowledge invoices", "forget", {"id": "invoices", "collection": "knowledge"}),
    ("memory forget knowledge nothing", "forget", {"id": "nothing", "collection": "knowledge"}),
    (
        "memory remember 灯塔在海边 --id x --in learning --tag sea --category place --session s2",
        "remember",
        {
            "text": "灯塔在海边",
            "id": "x",
            "collection": "learning",
            "tags": ["sea"],
            "category": "place",
            "session_key": "s2",
        },
    ),
    ("skills list", "list_skills", {}),
    ("skills list -n 1 --offset 1", "list_skills", {"limit": 1, "offset": 1}),
    ("skills find 帮我提交代码", "find_skills", {"query": "帮我提交代码"}),
    ("skills find weather -n 1 --threshold 0.99", "find_skills", {"query": "weather", "limit": 1, "threshold": 0.99}),
    (f"skills scan {SKILLS}", "scan_skills", {"folder": SKILLS}),
    ("skills scan nowhere", "scan_skills", {"folder": "nowhere"}),
    ("devices list", "get_home", {}),
    ("devices list --room 客厅", "get_home", {"room": "客厅"}),
    ("devices list --room 地下室", "get_home", {"room": "地下室"}),
    ("devices ask 打开客厅的灯", "ask_devices", {"text": "打开客厅的灯"}),
    ("devices ask 关掉它 --room 客厅", "ask_devices", {"text": "关掉它", "room": "客厅"}),
    ("knowledge search 年假", "search_files", {"query": "年假"}),
    ("knowledge search 年假 --file none.txt", "search_files", {"query": "年假", "file_names": ["none.txt"]}),
    ("knowledge list", "list_files", {}),
    ("knowledge delete 手册.txt", "delete_file", {"file_name": "手册.txt"}),
    ("knowledge delete none.txt", "delete_file", {"file_name": "none.txt"}),
    ("models list", "list_models", {}),
    ("models status", "get_model_change", {}),
    ("doctor", "run_doctor", {}),
    ("search 灯塔", "search_everything", {"query": "灯塔"}),
    ("search invoices -n 1", "search_everything", {"query": "invoices", "limit": 1}),
]
ELSEWHERE = {"models default", "models rollback"}
"""Commands that change the model; `tests/cli/test_models_shell.py` has them."""
VARIES = re.compile(r"_ms$|^seconds|^detail|^mend$|^(created|updated|updated_at|uploaded_at)$")
"""What is not the same twice: times, and sentences that tell some."""
CHUNK = re.compile(r"^[0-9a-f]{12}(?=\.\d+$)")
"""The part of a paragraph's id that is drawn by lot."""
FIELDS = {
    "session": "session_key", "entry_id": "id", "ids": "id", "tag": "tags", "file": "file_names", "sentence": "text",
}  # fmt: skip
"""Options that have another name than the field they fill."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with something of everything in it."""
    place = tmp_path_factory.mktemp("operations")
    (place / "story.md").write_text("海很安静。", encoding="utf-8")
    (place / "手册.txt").write_text("员工每年有十五天带薪年假。", encoding="utf-8")
    write_skill(place / "skills", "git", front("git-commit", "生成Git提交信息"))
    write_skill(place / "skills", "weather", front("weather", "天气预报"))
    with homing.open(place / "data") as app:
        app.documents.save("novel", "ch1", "他一个人守着灯塔，三十年没有和人说话。\n\n海很安静。")
        app.documents.save("novel", "ch2", "She sells lamps at the market.")
        app.memory.remember("observation", "用户不吃辣，对花生过敏", entry_id="food", session_key="s1")
        app.memory.remember("knowledge", "Invoices are sent on the first working day.", entry_id="invoices")
        app.devices.replace({"devices": [LAMP]})
        app.knowledge().upload(place / "手册.txt")
        app.skills.scan(place / "skills")
    return place


@pytest.fixture
def places(filled: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two copies of that folder: one for the shell, one for Python."""
    return tuple(shutil.copytree(filled, tmp_path / name / "place") for name in ("shell", "python"))  # type: ignore[return-value]


def in_python(place: Path, name: str, given: dict[str, Any]) -> tuple[int, Any]:
    bound = OPERATIONS[name]
    with homing.open(place / "data", settings=Settings(data=place / "data")) as app:
        try:
            return 0, bound.run(Call(app, app), bound.input.model_validate(given)).model_dump(mode="json")
        except HomingError as error:
            return exit_code(error), error.code


def in_the_shell(place: Path, arguments: list[str]) -> tuple[int, Any]:
    done = CliRunner().invoke(command, [*arguments, "--data", str(place / "data"), "--json"])
    if isinstance(done.exception, HomingError):
        return exit_code(done.exception), done.exception.code
    assert done.exception is None, done.exception
    return done.exit_code, json.loads(done.stdout)


def settled(found: Any, place: Path) -> Any:
    """The same without what is not the same twice, and without the place."""
    if isinstance(found, dict):
        return {key: settled(value, place) for key, value in found.items() if not VARIES.search(key)}
    if isinstance(found, list | tuple):
        return [settled(one, place) for one in found]
    return CHUNK.sub("", found.replace(str(place), "PLACE")) if isinstance(found, str) else found


def test_every_command_that_is_an_operation_is_tried_here() -> None:
    tried = {
        (" ".join(line.split()[: 1 if line.startswith(("doctor", "search")) else 2]), name)
        for line, name, _ in EXAMPLES
    }
    assert tried == {(line, name) for line, names in CALLS.items() if line not in ELSEWHERE for name in names}


@pytest.mark.parametrize(("line", "name", "given"), EXAMPLES, ids=[line for line, _, _ in EXAMPLES])
def test_the_shell_prints_what_the_operation_answers(
    places: tuple[Path, Path], line: str, name: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, python = places
    monkeypatch.chdir(shell)
    words = [str(shell / "skills") if word == SKILLS else word for word in line.split()]
    given = {key: str(python / "skills") if value == SKILLS else value for key, value in given.items()}
    printed = settled(in_the_shell(shell, words), shell)
    assert printed == settled(in_python(python, name, given), python)


@pytest.mark.parametrize(
    "line", ["documents search novel 孤独的感觉", "memory recall 点菜", "documents show novel ch9"]
)
def test_a_process_prints_the_same(filled: Path, line: str) -> None:
    name, given = next((name, given) for words, name, given in EXAMPLES if words.startswith(line))
    done = Shell(filled)(*line.split(), "--json")
    code, answer = in_python(filled, name, {**given, "query": "点菜"} if name == "recall" else given)
    assert done.returncode == code
    found = json.loads(done.stdout)
    assert (found["error"]["code"] if code else settled(found, filled)) == settled(answer, filled)


@pytest.mark.parametrize("line", CALLS)
def test_an_option_has_the_default_of_the_operation(line: str) -> None:
    fields = {key: field for name in CALLS[line] for key, field in OPERATIONS[name].input.model_fields.items()}
    for parameter in ALL[line].params:
        field = fields.get(FIELDS.get(parameter.name, parameter.name))
        if field is not None and not parameter.required and parameter.default is not None:
            assert parameter.default == field.default, parameter.name


def test_every_field_of_an_operation_can_be_said_in_the_shell() -> None:
    # `repl` keeps a dialogue; a file or a pipe has a text; people look at no vectors, and count characters; each
    # kind of thing has a search of its own.
    unsaid = {
        "search_everything": {"sources", "project"},
        "ask_devices": {"state"},
        "save_document": {"text"},
        "list_chunks": {"include_embedding", "offset_unit"},
    }
    for line, names in CALLS.items():
        options = {FIELDS.get(one.name, one.name) for one in ALL[line].params}
        options |= {one + "s" for one in options} | {"file_name" if "name" in options else ""}
        for name in names:
            assert set(OPERATIONS[name].input.model_fields) - options == unsaid.get(name, set()), (line, name)
