"""What `pip install homing` brings is enough for the tour, the page, an agent and a PDF.

The wheel is built and unpacked into an empty folder. Processes that run from it see the libraries that it asks for, and
what those ask for, and no other that happens to be installed here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import httpx2
import pytest
from mcp import StdioServerParameters
from packaging.requirements import Requirement

from tests.files.made_files import make_pdf
from tests.mcp.furnished import call, data_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
ONLY = """
import importlib.abc, os, sys
class Absent(importlib.abc.MetaPathFinder):
    names = frozenset({absent!r})
    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import homing
assert homing.__file__.startswith({site!r}), homing.__file__
from homing.cli.main import run
run()
"""


def needed(distribution: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> Iterator[str]:
    """The names of a distribution and of everything that it asks for."""
    name = re.sub(r"[-_.]+", "-", distribution).lower()
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    yield name
    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:
        return
    for one in map(Requirement, lines):
        environments = [{"extra": extra} for extra in extras or {""}]
        if one.marker is None or any(one.marker.evaluate(environment) for environment in environments):
            yield from needed(one.name, frozenset(one.extras), seen)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, timeout=300)
    [wheel] = folder.glob("homing-*.whl")
    site = folder / "site"
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-compile", "--target", str(site), str(wheel)], check=True, timeout=300
    )
    there = set(needed("homing", frozenset(), set()))
    absent = {
        module
        for module, owners in packages_distributions().items()
        if not {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners} & there
    }
    assert {"lancedb", "psycopg", "langchain_core", "hypothesis"} <= absent
    code = ONLY.format(absent=sorted(absent), site=str(site))
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r})\n{code}"]


def test_the_wheel_takes_the_tour_and_reads_a_pdf(command: list[str], tmp_path: Path) -> None:
    def run(*arguments: str) -> dict[str, object]:
        done = subprocess.run([*command, *arguments, "--json"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    assert "帮我提交代码" in json.dumps(run("demo", "--data", "tour"), ensure_ascii=False)
    (tmp_path / "灯塔.pdf").write_bytes(make_pdf(["灯塔的钥匙在抽屉里"]))
    assert run("docs", "start-agent")["text"] == (ROOT / "docs" / "start-agent.md").read_text(encoding="utf-8")
    run("knowledge", "upload", "灯塔.pdf")
    assert "灯塔的钥匙在抽屉里" in json.dumps(run("knowledge", "search", "钥匙在哪"), ensure_ascii=False)


def test_the_wheel_serves_the_page(command: list[str], tmp_path: Path) -> None:
    arguments = [*command, "serve", "--port", "0", "--json", "--log", "none", "--data", "data"]
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        told = "".join(iter(server.stdout.readline, "}\n")) + "}"
        address = json.loads(told)["address"]
        page = httpx2.get(address, timeout=60)
        docs = httpx2.get(f"{address}docs", timeout=60)
        guide = httpx2.get(f"{address}page/guide/README.md", timeout=60)
        server.terminate()
    assert (page.status_code, "<title>" in page.text) == (200, True)
    assert (docs.status_code, docs.headers["location"]) == (307, "/#/guide")
    assert guide.text == (ROOT / "docs" / "README.md").read_text(encoding="utf-8")


def test_the_wheel_speaks_to_agents(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "HOMING_DATA": str(tmp_path / "data")}
    server = StdioServerParameters(command=command[0], args=[*command[1:], "mcp"], env=environment)
    call(server, "remember", text="发票每月第一个工作日寄出", collection="knowledge")
    assert data_of(call(server, "recall", query="发票"))["hits"][0]["text"] == "发票每月第一个工作日寄出"
