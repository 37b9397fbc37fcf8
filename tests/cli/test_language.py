"""The shell speaks the language of the user: every heading and message of a command has a Chinese form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import pytest

from homing.cli import demo
from homing.cli.language import chinese
from homing.devices.answer import Decision
from homing.devices.query import Mood
from homing.errors_zh import has_chinese
from homing.operations.hits import Source
from homing.records import Leg, Mode
from homing.skills.scanning import Outcome
from tests.cli.shell import Shell

FOLDER = Path(demo.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
SPEAKING = {"text": 0, "say": 0, "piped": 0, "note": 0, "progress": 0, "confirm": 0, "print_table": 0, "print_hits": 2}
"""The functions that print, and which of their arguments is English."""
ERRORS = {"InvalidArgument", "NotFound", "ConfigError", "ModelNotReady"}
BY_VALUE = (
    *(word for kind in (Decision, Mood, Outcome, Mode, Leg, Source) for word in get_args(kind)),
    *(about for _, _, about in demo.QUESTIONS),
    *("Indexing", "Asking"),
)
"""Words that commands take from elsewhere."""
ELSEWHERE = {"name", "found.mode", "one.mode", "about", "step.decision", "step.ir['mood']", "doing", "leg.leg", "kind"}
ELSEWHERE |= {"group.source", "one.outcome", "english", "empty", "nothing", "instead", "name.removesuffix('s')"}
ELSEWHERE |= {"map(str, range(1, len(given) + 1))"}


def called(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node


def english(tree: ast.Module) -> Iterator[str]:
    """What commands of a file may say; an f-string there is an error: it has no Chinese form."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                values.setdefault(ast.unparse(target), []).append(node.value)
    for name, call in called(tree):
        if name in SPEAKING:
            said = call.args[SPEAKING[name] : SPEAKING[name] + 1]
            said += [one.value for one in call.keywords if one.arg == "empty"]
            for one in said:
                yield from literals(one, values)


def literals(node: ast.expr, values: dict[str, list[ast.expr]]) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(value)):
            yield value
        case ast.IfExp(body=first, orelse=second):
            yield from literals(first, values)
            yield from literals(second, values)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from literals(part, values)
        case ast.Starred(value=inner):
            yield from literals(inner, values)
        case ast.Dict(keys=keys):
            for key in keys:
                yield from literals(key, values) if key is not None else ()
        case ast.DictComp(generators=[ast.comprehension(iter=ast.Call(func=ast.Attribute(value=inner)))]):
            yield from literals(inner, values)
        case _ if ast.unparse(node) in values and ast.unparse(node) not in ELSEWHERE:
            for assigned in values[ast.unparse(node)]:
                yield from literals(assigned, values)
        case _:
            assert ast.unparse(node) in ELSEWHERE, f"{ast.unparse(node)} is no literal: it has no Chinese form"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_everything_a_command_says_has_a_chinese_form(path: Path) -> None:
    said = set(english(ast.parse(path.read_text(encoding="utf-8"))))
    missing = [one for one in said if one not in chinese() and re.search(r"[a-z]{2}", re.sub(r"\{.*?\}", "", one))]
    assert not missing, "write the Chinese of these into chinese.json"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_error_of_the_shell_is_said_in_its_language(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, call in called(tree):
        if name in ERRORS and path.stem != "main":
            said = ast.unparse(call.args[0])
            assert said == "said" or said.startswith("text("), f"{path.name}:{call.lineno} raises in English only"


def test_words_from_elsewhere_have_a_chinese_form() -> None:
    assert not [word for word in BY_VALUE if word not in chinese()]


def test_a_translation_has_the_values_of_its_message_and_is_used() -> None:
    said = {one for path in FILES for one in english(ast.parse(path.read_text(encoding="utf-8")))}
    for message, translated in chinese().items():
        assert has_chinese(translated) or message == "; "
        assert fields(translated) == fields(message), message
        assert " " not in message or message in said | {*BY_VALUE, *FIELDS}, f"nobody says {message!r}"


FIELDS = {"file modes", "file name", "index sizes", "max distance", "memory queue", "min score", "min similarity"}
FIELDS |= {"session key"}
"""Names of inputs and of checks, which are no literals of the shell."""


def fields(message: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(message) if name}


@pytest.mark.slow
def test_a_newcomer_with_a_chinese_machine_reads_chinese(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    home: dict[str, Any] = {"LC_ALL": "zh_CN.UTF-8"}
    assert "已上传" not in shell("knowledge", "list", **home).stdout
    shell("memory", "remember", "Invoices go out on the first.", **home)
    assert "集合" in shell("memory", "list", **home).stdout
    assert "collection" in shell("memory", "list", LC_ALL="C.UTF-8").stdout
    refused = shell("memory", "recall", "invoices", "--limit", "0", **home).stderr
    assert "数量 不能小于 1" in refused
    assert "should" not in refused
    meant = shell("docs", "search", "novel", "灯塔", "--mode", "keyword", LC_ALL="C.UTF-8")
    assert meant.returncode == 2
    assert "homing documents search novel" in meant.stderr
