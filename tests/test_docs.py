"""Documents that cannot lie: blocks are run, generated pages are compared, links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.database.postgres.server import LocalServer
from tests import forked

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BESIDE = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def environ_in(folder: Path) -> dict[str, str]:
    """`homing` is the one beside this Python, also without an active virtual environment; home is where the test is."""
    return os.environ | {"PATH": BESIDE, "HOME": str(folder)}


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def named(page: Path) -> str:
    return page.name


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where a page is run. Root keeps a server elsewhere, where the next run in a folder of this name would find it."""
    yield tmp_path
    LocalServer(tmp_path / "data" / "postgres").remove()


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_python_blocks_run_from_top_to_bottom(page: Path, folder: Path) -> None:
    script = folder / "page.py"
    script.write_text("\n\n".join(blocks(page, "python")), encoding="utf-8")
    # An operation of one's own is there before anything that binds operations is imported.
    if "@operation(" in script.read_text(encoding="utf-8"):
        done = run_as_written([sys.executable, str(script)], folder)
    else:
        done = forked.run_python([str(script)], cwd=folder, env=environ_in(folder))
    assert done.returncode == 0, done.stderr


def run_as_written(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    # What sets up a client or a shell writes into the home of whoever runs it.
    environ = environ_in(folder) | {"XDG_CONFIG_HOME": str(folder / ".config")}
    if "--install-completion" in command:
        # For which shell is told by who started it.
        command = ["bash", "-c", f"{shlex.join(command)}; exit $?"]
    if command[0] == "homing":
        return forked.run(command[1:], cwd=folder, env=environ)
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "shell")], ids=named)
def test_shell_blocks_run(page: Path, folder: Path) -> None:
    # `make` sets up a virtual environment; everything else is run as it is written, in a folder with two notes,
    # a skill and a home.
    notes = folder / "notes"
    notes.mkdir()
    (notes / "灯塔.md").write_text("他一个人守着灯塔，三十年没有和人说话。\n", encoding="utf-8")
    (notes / "git.md").write_text("Amend a commit that was not pushed yet.\n", encoding="utf-8")
    skill = folder / "skills" / "translate"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: translate\ndescription: 翻译文件\n---\n", encoding="utf-8")
    lamp = {"id": "lamp", "name": "吊灯", "type": "light", "room": "客厅"}
    fan = {"id": "fan", "name": "fan", "type": "fan", "room": "客厅"}
    (folder / "home.json").write_text(json.dumps({"devices": [lamp, fan]}), encoding="utf-8")
    for line in "".join(blocks(page, "shell")).splitlines():
        command = line.split("  #")[0].strip()
        if not command or command.startswith(("#", "make ", "pip ", "git ")):
            continue
        done = run_as_written(shlex.split(command), folder)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_guide_leads_to_every_page() -> None:
    guide = ROOT / "docs" / "README.md"
    pages = {page.name for page in PAGES[1:]} - {guide.name}
    assert pages == set(LINK.findall(guide.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["cli.md", "configuration.md"])
def test_generated_pages_are_up_to_date(name: str) -> None:
    pages = runpy.run_path(str(ROOT / "tools" / "reference.py"))["PAGES"]
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == pages[name](), "run `make docs`"


def test_the_benchmark_page_says_what_was_measured() -> None:
    page = runpy.run_path(str(ROOT / "tools" / "benchmarks.py"))["page"]
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page(), "run `make docs`"
