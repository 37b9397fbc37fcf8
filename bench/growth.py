"""What growth costs: loading, searching, memory and disk at 10,000, 100,000 and 1,000,000 chunks, on each engine.

Vectors and texts are made from real ones: a chunk is the vector of a real text, turned a little (`--turn`; .6 leaves a
cosine of .86), and sentences of that text and of another one. So words are about as frequent as in a corpus; what is
measured is cost, and never the quality of answers. Questions are such chunks as well.

Every engine runs in a process of its own. Processor time is that of the client and of the server together, by the
kernel's own count, and is what to compare: wall time is that of a machine that does other things. Rows are loaded as
`homing bulk` loads them, with the vector index built afterwards.

    python bench/growth.py TEXTS.jsonl [--rows 10000 100000] [--engines sqlite postgres] [--queries 40]

`--rows 1000000` works the same way, and takes half an hour of processor time and 5 GB of disk. TEXTS.jsonl has
one object a line, whose longest string is the text; 500 of them are embedded.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from homing.database.postgres.server import LocalServer
from homing.embedders.local import LocalProvider
from homing.embedders.provider import Kind
from homing.engine.search import HybridOptions, search
from homing.records import VectorRecord
from homing.stores import open_store
from homing.stores.store import LoadsInBulk, Store
from homing.vectors import Matrix, Scale, normalise
from report import machine, show, write

TEXTS, BATCH, LIMIT = 500, 2_000, 10
TICK = os.sysconf("SC_CLK_TCK")
MODEL = "growth@384"


class Corpus:
    """Chunks by number, always the same."""

    def __init__(self, texts: Sequence[str], vectors: Matrix, turn: float) -> None:
        self._sentences = [
            [one for one in re.split(r"(?<=[。！？.!?])", text) if one.strip()] or [text] for text in texts
        ]
        self._vectors = vectors
        self._turn = turn

    def chunk(self, number: int) -> tuple[str, Any]:
        """The text and the vector of a chunk."""
        chance = np.random.default_rng(number)
        of, other = int(chance.integers(len(self._vectors))), int(chance.integers(len(self._vectors)))
        noise = normalise(chance.standard_normal((1, self._vectors.shape[1])).astype(np.float32))[0]
        vector = normalise([self._vectors[of] + self._turn * noise])[0]
        some = random.Random(number)
        parts = [some.choice(self._sentences[of]) for _ in range(3)] + [some.choice(self._sentences[other])]
        return "".join(parts), vector

    def records(self, start: int, end: int) -> Iterator[VectorRecord]:
        """Chunks as they are loaded."""
        for number in range(start, end):
            text, vector = self.chunk(number)
            yield VectorRecord(f"{number:07d}", "chunks", vector, {"part": number % 100}, text, MODEL)


class Asked:
    """A provider that knows the vectors of the questions: what embedding costs does not grow."""

    id, dimensions = MODEL, 384
    scale: Scale | None = None

    def __init__(self, vectors: dict[str, Any]) -> None:
        self._vectors = vectors

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        return np.stack([self._vectors[text] for text in texts])

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        return [False for _ in texts]


class Meter:
    """Processor time of this process and of a server, and wall time, since it was made."""

    def __init__(self, server: int | None) -> None:
        self._server = server
        self._began = (time.process_time(), _server_seconds(server), time.perf_counter())

    def read(self) -> dict[str, float]:
        """Seconds."""
        now = (time.process_time(), _server_seconds(self._server), time.perf_counter())
        client, server, wall = (round(there - here, 3) for here, there in zip(self._began, now, strict=True))
        return {"cpu": round(client + server, 3), "server": server, "wall": wall}


def _server_seconds(pid: int | None) -> float:
    """What a PostgreSQL server and its processes, those that have ended included, have used."""
    if pid is None:
        return 0.0
    return sum(_ticks(one) for one in (pid, *_children(pid))) / TICK


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(one) for one in fields[11:15])


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _memory(pid: int) -> int:
    """Bytes that a process has for itself."""
    try:
        found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def measure(url: str, server: int | None, folder: str, corpus: Corpus, rows: int, queries: int, out: Any) -> None:
    """Load, ask and weigh one engine; runs in a process of its own."""
    store = open_store(url)
    result: dict[str, Any] = {}
    meter = Meter(server)
    with store.loading() if isinstance(store, LoadsInBulk) else nullcontext():
        for start in range(0, rows, BATCH):
            store.write(corpus.records(start, min(start + BATCH, rows)))
        result["load"] = meter.read()
        meter = Meter(server)
    result["index"] = meter.read()
    asked = [corpus.chunk(10_000_000 + number) for number in range(queries)]
    vectors = {text[:60]: vector for text, vector in asked}
    for kind, ask in _kinds(store, Asked(vectors)).items():
        for text, vector in asked[:3]:
            ask(text[:60], vector)
        walls, meter = [], Meter(server)
        for text, vector in asked:
            began = time.perf_counter()
            ask(text[:60], vector)
            walls.append(time.perf_counter() - began)
        spent = meter.read()
        result[kind] = {
            "cpu_ms": round(spent["cpu"] / queries * 1000, 2),
            "p50_ms": round(float(np.median(walls)) * 1000, 2),
            "p95_ms": round(float(np.quantile(walls, 0.95)) * 1000, 2),
        }
    result["memory_mb"] = round((_memory(os.getpid()) + sum(map(_memory, _family(server)))) / 1e6)
    store.close()
    files = (one for one in Path(folder).rglob("*") if one.is_file())
    result["disk_mb"] = round(sum(one.stat().st_size for one in files) / 1e6)
    out.put(result)


def _kinds(store: Store, provider: Asked) -> dict[str, Callable[[str, Any], object]]:
    options = HybridOptions(limit=LIMIT)
    return {
        "vector": lambda text, vector: store.search_vector("chunks", vector, LIMIT),
        "keyword": lambda text, vector: store.search_words("chunks", text, LIMIT),
        "hybrid": lambda text, vector: search(text, "chunks", store=store, embedder=provider, options=options),
    }


def _family(server: int | None) -> list[int]:
    return [] if server is None else [server, *_children(server)]


def real(file: Path) -> tuple[list[str], Matrix]:
    """Some real texts, and their vectors."""
    lines = file.read_text(encoding="utf-8").splitlines()
    texts = [max((one for one in json.loads(line).values() if isinstance(one, str)), key=len) for line in lines]
    chosen = random.Random(1).sample(sorted(set(texts)), min(TEXTS, len(set(texts))))
    return chosen, LocalProvider().embed(chosen)


def run(engine: str, corpus: Corpus, rows: int, queries: int) -> dict[str, Any]:
    """One engine at one size."""
    with tempfile.TemporaryDirectory(prefix="homing-growth-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        server = LocalServer(folder / "postgres") if engine == "postgres" else None
        pid = None
        if server is not None:
            server.start()
            pid = int((server.data / "postmaster.pid").read_text().split()[0])
        urls = {"sqlite": f"sqlite:///{folder}/store.db", "lance": f"lance://{folder}/lance"}
        url = server.url if server is not None else urls[engine]
        weighed = str(server.data if server is not None else folder)
        context = multiprocessing.get_context("spawn")
        out: Any = context.Queue()
        process = context.Process(target=measure, args=(url, pid, weighed, corpus, rows, queries, out))
        process.start()
        try:
            result: dict[str, Any] = out.get()
            process.join()
        finally:
            if server is not None:
                server.remove()
    return {"engine": engine, "rows": rows, **result}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--engines", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--turn", type=float, default=0.6)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "growth.json")
    options = parser.parse_args()
    corpus = Corpus(*real(options.texts), options.turn)
    results = []
    for rows in options.rows:
        for engine in options.engines:
            results.append(run(engine, corpus, rows, options.queries))
            # Written after each: a run of hours may be stopped.
            write(options.out, {"machine": machine(), "turn": options.turn, "results": results})
            show(f"{engine}, {rows} chunks", [_line(results[-1])])


def _line(result: dict[str, Any]) -> dict[str, Any]:
    rows = result["rows"]
    return {
        "load ms/row": round(result["load"]["cpu"] / rows * 1000, 2),
        "index ms/row": round(result["index"]["cpu"] / rows * 1000, 2),
        **{f"{kind} ms": result[kind]["cpu_ms"] for kind in ("vector", "keyword", "hybrid")},
        "memory MB": result["memory_mb"],
        "disk MB": result["disk_mb"],
    }


if __name__ == "__main__":
    main()
