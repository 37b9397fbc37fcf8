"""What every measurement prints and writes: a table, and a JSON file that names the machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from homing.embedders.local import products_are_exact


def machine() -> dict[str, Any]:
    """The processor, what it multiplies bytes with, its cores, the Python that ran, and how busy it was."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    return {
        "processor": processor,
        "instructions": instructions(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load average": round(os.getloadavg()[0], 1),
    }


def instructions() -> str:
    """The set of instructions that products of bytes take here: what the speed of the bundled model depends on."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return platform.machine()
    # Asked of onnxruntime rather than of the processor, which may have more than is used.
    return "VNNI" if products_are_exact() else "AVX2"


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print rows as an aligned table."""
    print(f"\n{title}")
    columns = list(rows[0])
    widths = {name: max(len(name), *(len(str(row[name])) for row in rows)) for name in columns}
    print("  ".join(name.ljust(widths[name]) for name in columns))
    for row in rows:
        print("  ".join(str(row[name]).ljust(widths[name]) for name in columns))


def write(path: Path, result: dict[str, Any]) -> None:
    """Keep a result beside the others."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path.name}")
