"""Homing's three stores beside the bare engines: loading, three kinds of search, recall, disk and memory.

Each contender runs in a process of its own. Every question is put to all of them in turn, so that whatever else the
machine does falls on all alike. Vectors come in heaps, as those of texts do; recall is against comparing everything.
The filter lets one record in a hundred through. `overhead` is the median of Homing's vector search over that of the
engine it stands on, set alike; `pgvector default` is as it comes, faster and with less recall. Loading includes the
import of the library and the making of indexes.

    python bench/stores.py [--rows 10000 100000] [--queries 60] [--vectors FILE.npy] [--peers PYTHON] [--only NAME …]

`--rows 1000000` takes about an hour and 20 GB of disk. Chroma and FAISS take part where `--peers` names a Python that
has them. The memory of a PostgreSQL contender is that of its client.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from homing.database.postgres.server import LocalServer
from homing.text.tokens import query_terms, tokens
from homing.vectors import Matrix, normalise
from report import machine, show, write

WIDTH, LIMIT, GROUPS = 384, 10, 100
WORKER = Path(__file__).parent / "workers" / "store_worker.py"
BARE = {"homing sqlite": "sqlite-vec", "homing lance": "lancedb", "homing postgres": "pgvector"}
KINDS = ("vector", "filtered", "keyword")


def heaps(count: int, chance: np.random.Generator) -> Matrix:
    """Vectors of low inner dimension around some centres, of which a few are frequent."""
    shape = np.random.default_rng(0)
    directions = shape.standard_normal((64, WIDTH)) / 8
    centres = shape.standard_normal((2_000, 64))
    often = 1 / np.arange(1, 2_001) ** 0.7
    chosen = centres[chance.choice(2_000, count, p=often / often.sum())]
    inner = chosen + 0.7 * chance.standard_normal((count, 64))
    return normalise(inner @ directions + 0.25 * chance.standard_normal((count, WIDTH)))


def sentences(count: int, length: int, chance: np.random.Generator) -> list[str]:
    """Texts of both languages whose words are as unevenly frequent as real ones."""
    characters = [chr(0x4E00 + number) for number in range(3_000)]
    vocabulary = [
        f"word{number}" if number % 2 else "".join(characters[(number * step) % 3_000] for step in (7, 13))
        for number in range(20_000)
    ]
    often = 1 / np.arange(1, 20_001)
    picked = chance.choice(20_000, (count, 2 * length), p=often / often.sum()).tolist()
    lengths = chance.integers(length // 2, 2 * length, count).tolist()
    return ["，".join(vocabulary[number] for number in row[:used]) for row, used in zip(picked, lengths, strict=True)]


def prepare(folder: Path, count: int, queries: int, given: Path | None) -> list[dict[str, set[str]]]:
    """Write what the workers read; returns for each query what comparing everything finds."""
    chance = np.random.default_rng(1)
    if given:
        drawn = np.load(given, mmap_mode="r")
        drawn = normalise(drawn[np.sort(chance.choice(len(drawn), count + queries, replace=False))])
        drawn = drawn[chance.permutation(len(drawn))]
    else:
        drawn = np.concatenate(
            [heaps(min(50_000, count + queries - at), chance) for at in range(0, count + queries, 50_000)]
        )
    rows, asked = drawn[:count], drawn[count:]
    np.save(folder / "vectors.npy", rows)
    np.save(folder / "queries.npy", asked)
    texts, words = sentences(count, 25, chance), sentences(queries, 3, chance)
    pair = [texts, [" ".join(tokens(text)) for text in texts]]
    (folder / "texts.json").write_text(json.dumps(pair, ensure_ascii=False), encoding="utf-8")
    pair = [words, [query_terms(query) for query in words]]
    (folder / "asked.json").write_text(json.dumps(pair, ensure_ascii=False), encoding="utf-8")
    truth = []
    for number, query in enumerate(asked):
        scores = rows @ query
        group = np.arange(number % GROUPS, count, GROUPS)
        truth.append(
            {
                "vector": set(map(str, np.argsort(-scores)[:LIMIT].tolist())),
                "filtered": set(map(str, group[np.argsort(-scores[group])[:LIMIT]].tolist())),
            }
        )
    return truth


class Worker:
    """A contender in its process."""

    def __init__(self, python: str, kind: str, folder: Path, address: str, data: Path) -> None:
        command = [python, str(WORKER), kind, str(folder), address, str(data)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, do: str, number: int = 0) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([do, number]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the contender ended; what it said is above")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def workers(folder: Path, server: LocalServer, options: argparse.Namespace) -> Iterator[dict[str, Worker]]:
    started = {
        "homing sqlite": (sys.executable, "homing", f"sqlite:///{folder}/homing-sqlite/homing.db"),
        "sqlite-vec": (sys.executable, "sqlite-vec", ""),
        "homing lance": (sys.executable, "homing", f"lance://{folder}/homing-lance/store"),
        "lancedb": (sys.executable, "lancedb", ""),
        "homing postgres": (sys.executable, "homing", server.url),
        "pgvector": (sys.executable, "pgvector", server.url),
        "pgvector default": (sys.executable, "pgvector default", server.url),
    }
    if options.peers:
        started |= {"chroma": (options.peers, "chroma", ""), "faiss flat": (options.peers, "faiss", "")}
    if options.only:
        started = {name: how for name, how in started.items() if name in options.only}
    with ExitStack() as stack:
        opened = {}
        for name, (python, kind, address) in started.items():
            worker = Worker(python, kind, folder / name.replace(" ", "-"), address, folder)
            stack.enter_context(worker.process)
            opened[name] = worker
        yield opened
        for worker in opened.values():
            assert worker.process.stdin is not None
            worker.process.stdin.close()


def measure(count: int, options: argparse.Namespace, folder: Path, server: LocalServer) -> list[dict[str, Any]]:
    """One line per contender."""
    truth = prepare(folder, count, options.queries, options.vectors)
    with workers(folder, server, options) as started:
        opened, loads, has = {}, {}, {}
        for name, worker in started.items():
            try:
                answer = worker.ask("load")
            except RuntimeError as error:
                print(f"{name} could not load {count:,} rows: {error}", file=sys.stderr)
                continue
            opened[name], loads[name], has[name] = worker, answer["seconds"], answer["kinds"]
            print(f"{count:,} rows into {name}: {loads[name]:.1f} s", file=sys.stderr)
        times: dict[tuple[str, str], list[float]] = {}
        right: dict[tuple[str, str], list[float]] = {}
        for kind in KINDS:
            asked = {name: worker for name, worker in opened.items() if kind in has[name]}
            for worker in asked.values():
                for number in range(3):
                    worker.ask(kind, number)
            for number in range(options.queries):
                for name, worker in asked.items():
                    answer = worker.ask(kind, number)
                    times.setdefault((name, kind), []).append(answer["seconds"] * 1000)
                    if kind in truth[number]:
                        share = len(truth[number][kind] & set(answer["ids"])) / len(truth[number][kind])
                        right.setdefault((name, kind), []).append(share)
        stats = {name: worker.ask("stats") for name, worker in opened.items()}
    return [line(count, name, loads[name], times, right, stats[name]) for name in opened]


def line(count: int, name: str, load: float, times: Any, right: Any, stats: dict[str, float]) -> dict[str, Any]:
    found: dict[str, Any] = {"rows": count, "contender": name, "load s": round(load, 1)}
    for kind in KINDS:
        known = times.get((name, kind))
        found[f"{kind} p50"] = round(float(np.median(known)), 2) if known else "–"
        found[f"{kind} p95"] = round(float(np.percentile(known, 95)), 2) if known else "–"
    for kind in ("vector", "filtered"):
        found[f"recall {kind}"] = round(float(np.mean(right[name, kind])), 4)
    bare = times.get((BARE.get(name, ""), "vector"))
    found["overhead"] = round(found["vector p50"] / float(np.median(bare)), 2) if bare else "–"
    return found | {"disk MB": round(stats["disk_mb"]), "RSS MB": round(stats["rss_mb"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--vectors", type=Path, help="a matrix of real embeddings to draw rows and queries from")
    parser.add_argument("--peers", help="a Python that has chromadb and faiss-cpu")
    parser.add_argument("--only", nargs="+", help="names of the contenders that take part, where not all should")
    parser.add_argument("--name", default="stores", help="name of the file in bench/results")
    options = parser.parse_args()
    lines = []
    for count in options.rows:
        with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
            place = Path(folder)
            place.chmod(0o755)
            server = LocalServer(place / "postgres")
            server.start()
            try:
                lines += measure(count, options, place, server)
            finally:
                server.remove()
    show("Stores (milliseconds)", lines)
    write(
        Path(__file__).parent / "results" / f"{options.name}.json",
        {
            "machine": machine(),
            "versions": {name: version(name) for name in ("lancedb", "sqlite-vec", "apsw", "psycopg", "numpy")},
            "data": options.vectors.name if options.vectors else f"heaps, {WIDTH} dimensions",
            "date": time.strftime("%Y-%m-%d"),
            "stores": lines,
        },
    )


if __name__ == "__main__":
    main()
