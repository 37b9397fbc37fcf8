"""`homing` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Shell:
    """Runs `homing` as a user would, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from homing.cli.main import run; run()", *arguments]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOMING_")}
        return subprocess.run(
            command, cwd=self.folder, env=inherited | environ, input=stdin, capture_output=True, text=True, timeout=120
        )

    def json(self, *arguments: str, **options: str) -> Any:
        """What it prints with `--json`."""
        done = self(*arguments, "--json", **options)
        return json.loads(done.stdout)
