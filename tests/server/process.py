"""`homing serve` as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forked import Process, start


@dataclass(frozen=True)
class Serving:
    """A server that answers."""

    process: Process
    address: str
    log: Path

    def stop(self, signal: int) -> int:
        """Sends a signal and waits for the end; returns the exit code."""
        self.process.send_signal(signal)
        return self.process.wait(120)

    def lines(self) -> list[dict[str, Any]]:
        """What it logged."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@contextmanager
def serving(data: Path, *options: str, environ: Mapping[str, str] | None = None) -> Iterator[Serving]:
    """Starts the server on a free port and ends it, if it has not ended by then."""
    log = data.with_name("server.log")
    with log.open("w", encoding="utf-8") as stderr:
        process = start(
            ["serve", "--port", "0", "--json", "--data", str(data), *options],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=data.parent,
            env={**os.environ, **(environ or {})},
        )
    try:
        yield Serving(process, str(told(process, log)["address"]).rstrip("/"), log)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def told(process: Process, log: Path) -> dict[str, Any]:
    """What a process says with `--json` when it is ready."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if line == "}\n":
            found: dict[str, Any] = json.loads(said)
            return found
    raise AssertionError(f"the process did not start:\n{log.read_text(encoding='utf-8')}")
