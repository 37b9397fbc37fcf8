"""Homing's side of `end_to_end.py`: one job per process, one line of JSON at the end."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from contextlib import suppress
from pathlib import Path


def main() -> None:
    """Do the job named on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=["index", "ask", "warm"])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--model", help="for the peers only")
    chosen = parser.parse_args()
    folder = chosen.work / f"homing-{chosen.corpus}"
    result = {"index": index, "ask": ask, "warm": warm}[chosen.job](chosen.work, chosen.corpus, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**result, "rss_mb": peak}))


def corpus(work: Path, name: str) -> list[str]:
    texts: list[str] = json.loads((work / f"{name}.json").read_text(encoding="utf-8"))
    return texts


def index(work: Path, name: str, folder: Path) -> dict[str, float]:
    """A folder of files for the cold start; otherwise records straight into a collection, without the cache's help."""
    import shutil

    import homing

    shutil.rmtree(folder, ignore_errors=True)
    if name == "cold":
        notes = folder / "notes"
        notes.mkdir(parents=True)
        for number, text in enumerate(corpus(work, name)):
            (notes / f"{number}.md").write_text(" ".join(text.split()), encoding="utf-8")
        with homing.open(folder / "data") as app:
            app.folder(notes).refresh()
        return {}
    texts = corpus(work, name)
    started, used = time.perf_counter(), time.process_time()
    with homing.open(folder) as app:
        app.add({str(number): text for number, text in enumerate(texts)})
    return {"wall_s": time.perf_counter() - started, "cpu_s": time.process_time() - used}


def ask(work: Path, name: str, folder: Path) -> dict[str, float]:
    """What `homing search` does, by its own entry point."""
    from homing.cli.main import app

    sys.argv = ["homing", "search", "怎样配置代理服务器", f"{folder}/notes", "--json", "--data", f"{folder}/data"]
    with suppress(SystemExit):
        app()
    return {"cpu_s": time.process_time()}


def warm(work: Path, name: str, folder: Path) -> dict[str, float]:
    """Median time of a query, embedding and both legs included, queries never repeated."""
    import homing

    index(work, name, folder)
    queries = json.loads((work / "queries.json").read_text(encoding="utf-8"))
    walls, cpus = [], []
    with homing.open(folder) as app:
        for number in range(120):
            query = f"{queries[number % len(queries)]} {number}"
            started, used = time.perf_counter(), time.process_time()
            found = app.search(query)
            walls.append(time.perf_counter() - started)
            cpus.append(time.process_time() - used)
            assert found.mode == "hybrid"
            assert len(found) == 10
    return {"wall_s": statistics.median(walls[20:]), "cpu_s": statistics.median(cpus[20:])}


if __name__ == "__main__":
    main()
