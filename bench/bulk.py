"""What bulk loading costs beside the plain worker: rows for each second of one core, embedding and all else apart.

The same rows go into an SQLite store three times: written and embedded by the engine's own worker in one thread, by
`homing bulk` with processes, and on a Ray cluster of this machine (where Ray is installed). Processor time is counted
where it is spent: of embedding by those who embed, around each batch, and of reading, comparing and writing by the one
who hands out. A second of one core is what is divided by, so a busy machine says the same as an idle one.

    python bench/bulk.py TEXTS.jsonl [--rows 400] [--workers 2]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from homing.bulk import ProcessWorkers, RayWorkers, Source, Workers, load
from homing.embedders.local import LocalProvider
from homing.engine import Engine
from homing.records import VectorRecord
from homing.stores import open_store
from report import machine, show, write
from workers.timed_model import Timed


def measured(name: str, rows: int, work: Callable[[Engine, Path], None]) -> dict[str, Any]:
    """Do it in a store of its own."""
    with tempfile.TemporaryDirectory(prefix="homing-bulk-") as made:
        folder = Path(made)
        (folder / "log").mkdir()
        store = open_store(folder / "store.db")
        engine = Engine(store, Timed(str(folder / "log")), background=False)
        began, wall = time.process_time(), time.perf_counter()
        work(engine, folder / "log")
        spent, wall = time.process_time() - began, time.perf_counter() - wall
        logged = [line.split() for file in (folder / "log").glob("*.log") for line in file.read_text().splitlines()]
        embedding = sum(float(seconds) for seconds, _ in logged)
        assert sum(int(count) for _, count in logged) >= rows
        assert store.pending("rows") == 0
        here = (folder / "log" / f"{os.getpid()}.log").exists()
        engine.close()
        store.close()
    rest = spent - embedding if here else spent
    return {
        "how": name,
        "rows/s/core": round(rows / (embedding + rest), 1),
        "embedding ms/row": round(embedding / rows * 1000, 2),
        "all else ms/row": round(rest / rows * 1000, 2),
        "wall s": round(wall, 1),
    }


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    lines = options.texts.read_text(encoding="utf-8").splitlines()
    found = [max((one for one in json.loads(line).values() if isinstance(one, str)), key=len) for line in lines]
    texts = list(dict.fromkeys(found))[: options.rows]

    def plain(engine: Engine, log: Path) -> None:
        records = [VectorRecord(f"{number}", "rows", None, {}, text) for number, text in enumerate(texts)]
        engine.collection("rows").write(records)
        assert engine.flush()

    def bulk(start: Callable[[Any], Workers], engine: Engine, log: Path) -> None:
        file = log.parent / "rows.jsonl"
        rows = ({"id": str(number), "text": text} for number, text in enumerate(texts))
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        workers = start(partial(Timed, str(log)))
        load(engine, Source(str(file)), "rows", workers, model=LocalProvider().id, batch=64)
        workers.close()

    ways: dict[str, Callable[[Engine, Path], None]] = {
        "plain worker": plain,
        f"{options.workers} processes": partial(bulk, lambda make: ProcessWorkers(make, options.workers)),
    }
    if importlib.util.find_spec("ray") is not None:
        ways["Ray on this machine"] = partial(bulk, lambda make: RayWorkers(make, "local"))
    results = []
    for name, work in ways.items():
        results.append(measured(name, len(texts), work))
        show(f"{len(texts)} rows", results)
        file = Path(__file__).parent / "results" / "bulk.json"
        write(file, {"machine": machine(), "rows": len(texts), "ways": results})


if __name__ == "__main__":
    main()
