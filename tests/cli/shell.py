"""`homing` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.forked import run


class Shell:
    """Runs `homing` as a user would, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value for name, value in os.environ.items() if name == "HOMING_DATA" or not name.startswith("HOMING_")
        }
        # A process loads its model first, which takes long on a busy machine.
        patient = {"HOMING_SEARCH__DEADLINE": "300"}
        return run(arguments, cwd=self.folder, env=inherited | patient | environ, stdin=stdin)

    def json(self, *arguments: str, **options: str) -> Any:
        """What it prints with `--json`."""
        done = self(*arguments, "--json", **options)
        return json.loads(done.stdout)
