"""Searches a data folder over and over, in a process of its own, until a file appears; says what it saw.

When an answer differs from those before, it makes the file `changed`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import homing
from homing.config import Settings
from homing.engine.search import HybridOptions
from homing.errors import HomingError


def main(data: str, stop: str, changed: str) -> None:
    searches = empty = wrong = 0
    errors: list[str] = []
    degraded: list[str | None] = []
    cosines: set[float] = set()
    with homing.open(data, settings=Settings()) as app:
        print("ready", flush=True)
        while not Path(stop).exists():
            searches += 1
            try:
                found = app.search("灯塔 42", "notes", options=HybridOptions(limit=5, mode="semantic", deadline=30))
            except HomingError as error:
                errors.append(repr(error))
                continue
            if found.degraded:
                degraded.append(found.reason)
            if not found:
                empty += 1
                continue
            wrong += found[0].id != "n42"
            cosines.add(round(found[0].cosine or -2, 4))
            if len(cosines) > 1:
                Path(changed).touch()
    told = {"searches": searches, "empty": empty, "wrong": wrong, "errors": errors, "degraded": degraded}
    print(json.dumps(told | {"cosines": sorted(cosines)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
