"""Nearest neighbours in one SQLite file: Homing's search against plain sqlite-vec, and against memory-only libraries.

Every query is put to every contender in turn, so that whatever else the machine does falls on all alike; with and
without a filter that one record in a hundred passes. Recall is against comparing everything. The memory and the cold
start of Homing are measured in a process of its own.

    python bench/vectors.py [--rows 10000 100000] [--vectors FILE.npy] [--queries 60]

`--rows 1000000` takes some minutes and 6 GB of disk. Chroma and FAISS take part where they are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import sqlite_vec

from homing.records import VectorRecord
from homing.stores.sqlite import SqliteStore
from homing.stores.store import SearchOptions
from homing.vectors import Matrix, Vector, normalise
from report import machine, show, write

WIDTH = 384
GROUPS = 100
LIMIT = 10
BATCH = 5_000

Find = Callable[[Vector, int | None], list[int]]
"""The nearest rows for a query, of all or of one group."""


@contextmanager
def homing(rows: Matrix, folder: Path) -> Iterator[Find]:
    store = SqliteStore(folder / "homing.db")
    for start in range(0, len(rows), BATCH):
        store.upsert(
            VectorRecord(str(number), "bench", rows[number], {"group": number % GROUPS}, "", "bench")
            for number in range(start, min(start + BATCH, len(rows)))
        )
    yield lambda query, group: [
        int(match.id)
        for match in store.search("bench", query, LIMIT, SearchOptions({} if group is None else {"group": group}))
    ]
    store.close()


@contextmanager
def plain_vec0(rows: Matrix, folder: Path) -> Iterator[Find]:
    connection = apsw.Connection(str(folder / "vec0.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute(
        f"PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE v USING vec0("
        f"id INTEGER PRIMARY KEY, embedding float[{rows.shape[1]}] distance_metric=cosine, grp INTEGER)"
    ).fetchall()
    for start in range(0, len(rows), BATCH):
        with connection:
            connection.executemany(
                "INSERT INTO v(id, embedding, grp) VALUES (?, ?, ?)",
                ((n, rows[n].tobytes(), n % GROUPS) for n in range(start, min(start + BATCH, len(rows)))),
            )

    def find(query: Vector, group: int | None) -> list[int]:
        narrowed, bindings = ("", ()) if group is None else (" AND grp = ?", (group,))
        found = connection.execute(
            f"SELECT id FROM v WHERE embedding MATCH ? AND k = {LIMIT}{narrowed}", (query.tobytes(), *bindings)
        ).fetchall()
        return [int(key) for (key,) in found]

    yield find
    connection.close()


@contextmanager
def numpy_float32(rows: Matrix, folder: Path) -> Iterator[Find]:
    def find(query: Vector, group: int | None) -> list[int]:
        scores = (rows if group is None else rows[group::GROUPS]) @ query
        best = np.argpartition(-scores, min(LIMIT, len(scores) - 1))[:LIMIT]
        best = best[np.argsort(-scores[best])]
        return [int(place) if group is None else int(place) * GROUPS + group for place in best]

    yield find


@contextmanager
def faiss_flat(rows: Matrix, folder: Path) -> Iterator[Find]:
    import faiss

    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)

    def find(query: Vector, group: int | None) -> list[int]:
        chosen = np.arange(group or 0, len(rows), GROUPS)
        parameters = None if group is None else faiss.SearchParameters(sel=faiss.IDSelectorBatch(chosen))
        return [int(key) for key in index.search(query[np.newaxis, :], LIMIT, params=parameters)[1][0]]

    yield find


@contextmanager
def chroma(rows: Matrix, folder: Path) -> Iterator[Find]:
    import chromadb

    client = chromadb.PersistentClient(str(folder / "chroma"))
    collection = client.create_collection("bench", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    for start in range(0, len(rows), BATCH):
        numbers = range(start, min(start + BATCH, len(rows)))
        collection.add(
            ids=[str(n) for n in numbers],
            embeddings=rows[numbers.start : numbers.stop],
            metadatas=[{"group": n % GROUPS} for n in numbers],
        )

    def find(query: Vector, group: int | None) -> list[int]:
        narrowed = {} if group is None else {"where": {"group": group}}
        return [
            int(key)
            for key in collection.query(query_embeddings=query[np.newaxis, :], n_results=LIMIT, **narrowed)["ids"][0]
        ]

    yield find


def contenders(rows: int) -> dict[str, Callable[[Matrix, Path], Any]]:
    found: dict[str, Callable[[Matrix, Path], Any]] = {
        "homing": homing,
        "plain vec0": plain_vec0,
        "numpy": numpy_float32,
    }
    if find_spec("faiss"):
        found["faiss flat"] = faiss_flat
    if find_spec("chromadb") and rows <= 100_000:
        found["chroma (hnsw)"] = chroma
    return found


def measure(rows: Matrix, queries: Matrix, folder: Path) -> list[dict[str, Any]]:
    """One line per contender and kind of search."""
    opened: dict[str, tuple[Any, Find, float]] = {}
    for name, make in contenders(len(rows)).items():
        print(f"loading {len(rows):,} into {name}", file=sys.stderr)
        started = time.perf_counter()
        context = make(rows, folder)
        opened[name] = (context, context.__enter__(), time.perf_counter() - started)
    lines = []
    for filtered in (False, True):
        times: dict[str, list[float]] = {name: [] for name in opened}
        right = dict.fromkeys(opened, 0)
        for _, find, _ in opened.values():
            find(queries[0], 0 if filtered else None)
        for number, query in enumerate(queries):
            # Another group each time: nobody lives off the last answer.
            group = number % GROUPS if filtered else None
            best = set(exact(rows, query, group))
            for name, (_, find, _) in opened.items():
                started = time.perf_counter()
                found = find(query, group)
                times[name].append((time.perf_counter() - started) * 1000)
                right[name] += len(best & set(found))
        for name, (_, _, loading) in opened.items():
            p50, p95 = np.percentile(times[name], [50, 95])
            lines.append(
                {
                    "rows": len(rows),
                    "filter": "1 %" if filtered else "none",
                    "contender": name,
                    "p50 ms": round(float(p50), 2),
                    "p95 ms": round(float(p95), 2),
                    "of plain vec0": round(float(p50 / np.median(times["plain vec0"])), 4),
                    "recall@10": round(right[name] / (LIMIT * len(queries)), 4),
                    "load s": round(loading, 1),
                }
            )
    for context, _, _ in opened.values():
        context.__exit__(None, None, None)
    return lines


def exact(rows: Matrix, query: Vector, group: int | None) -> list[int]:
    """The nearest rows, by comparing everything."""
    scores = rows @ query
    if group is not None:
        scores[np.arange(len(rows)) % GROUPS != group] = -np.inf
    best = np.argpartition(-scores, LIMIT)[: LIMIT * 4]
    finer = rows[best].astype(np.float64) @ query.astype(np.float64)
    finer[np.isneginf(scores[best])] = -np.inf
    return [int(place) for place in best[np.argsort(-finer)][:LIMIT]]


COLD = """
import json, resource, sys, time
import numpy as np
from homing.stores.sqlite import SqliteStore
def mb():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6
query, before, started = np.load(sys.argv[2]), mb(), time.perf_counter()
store = SqliteStore(sys.argv[1])
opened = time.perf_counter()
store.search("bench", query)
found = time.perf_counter()
print(json.dumps({"open ms": (opened - started) * 1e3, "first search ms": (found - opened) * 1e3,
                  "memory MB": mb() - before, "of it vectors MB": store.memory_bytes / 1e6}))
"""


def cold_start(folder: Path, query: Vector) -> dict[str, float]:
    """A fresh process opens the file and searches once."""
    np.save(folder / "query.npy", query)
    runs = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", COLD, str(folder / "homing.db"), str(folder / "query.npy")],
            check=True,
            capture_output=True,
            text=True,
        )
        runs.append(json.loads(done.stdout))
    return {name: round(sorted(run[name] for run in runs)[1], 1) for name in runs[0]}


def versions() -> dict[str, str]:
    found = {}
    for name in ("apsw", "sqlite-vec", "simsimd", "numpy", "faiss-cpu", "chromadb"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--vectors", type=Path, help="a matrix of real embeddings to draw rows and queries from")
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--name", default="vectors", help="name of the file in bench/results")
    options = parser.parse_args()
    made = np.random.default_rng(1)
    lines, cold = [], []
    for count in options.rows:
        if options.vectors:
            drawn = np.load(options.vectors)
            drawn = normalise(drawn[made.permutation(len(drawn))[: count + options.queries]])
        else:
            drawn = normalise(made.standard_normal((count + options.queries, WIDTH), dtype=np.float32))
        rows, queries = drawn[: -options.queries], drawn[-options.queries :]
        with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
            lines += measure(rows, queries, Path(folder))
            size = (Path(folder) / "homing.db").stat().st_size / 1e6
            cold.append({"rows": len(rows), **cold_start(Path(folder), queries[0]), "file MB": round(size, 1)})
    show("Nearest 10", lines)
    show("Homing in a fresh process", cold)
    print(f"peak memory of the whole run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")
    write(
        Path(__file__).parent / "results" / f"{options.name}.json",
        {
            "machine": {**machine(), "load average": round(os.getloadavg()[1], 1)},
            "versions": versions(),
            "data": options.vectors.name if options.vectors else f"gaussian, {WIDTH} dimensions",
            "searches": lines,
            "cold": cold,
        },
    )


if __name__ == "__main__":
    main()
