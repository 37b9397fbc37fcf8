"""How the contracts start other processes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


class Processes:
    """Overridden where processes come from elsewhere, such as a process that has imported everything and forks."""

    @staticmethod
    def start_python(code: str, *arguments: str) -> Any:
        """Another process that runs this code, as `subprocess.Popen` gives it, with text for its input and output."""
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
