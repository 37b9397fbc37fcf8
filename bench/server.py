"""What one answer of `homing serve` costs, beside the least that a server with the same model could do.

    python bench/server.py DATA [--work FOLDER] [--rounds 6] [--each 40] [--texts 2000]

DATA is a folder with `train/sections.jsonl.xz` (`{lang, title, heading, body}` a line), golden sets below `dev/` and
`dev/skills.tar.xz`. The floor is a FastAPI application that embeds with the bundled model, asks FTS5, asks a matrix of
vectors and fuses (`workers/floor_server.py`), over the same texts. Three servers of ours have them in 1, 20 and 200
projects, with the skills, a memory and a home. All are processes of their own, asked over real sockets in turns; no
question is asked twice of anybody. CPU is that of the server's process, on all its threads.

`--work` keeps the folders for the next run: embedding takes longer than measuring.
"""

from __future__ import annotations

import argparse
import http.client
import json
import lzma
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import homing
from homing.config import Settings
from homing.embedders.local import LocalProvider
from load import processor_seconds, resident, serving
from measures import remembered
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "server.json"
FLOOR = Path(__file__).parent / "workers" / "floor_server.py"
PROJECTS = (1, 20, 200)
QUESTIONS = ("passages_q-zh_d-zh", "passages_q-en_d-en", "agents_zh", "agents_en", "tools_bfcl")
HOME = Path(homing.__file__).parent / "examples" / "home.json"
LIMIT = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--each", type=int, default=40, help="requests of a kind in a round")
    parser.add_argument("--texts", type=int, default=2000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="homing-server-") as temporary:
        place = asked.work or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        texts = real_texts(asked.data, asked.texts)
        (place / "texts.jsonl").write_text(
            "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()), encoding="utf-8"
        )
        for count in PROJECTS:
            fill(place / f"{count}-projects", texts, count, asked.data, place / "vectors")
        rows = measured(place, questions(asked.data), asked.rounds, asked.each)
    show(f"{len(texts)} texts, {LIMIT} hits, {asked.rounds} rounds of {asked.each} requests", rows)
    told = {"texts": len(texts), "hits": LIMIT, "rounds": asked.rounds, "each": asked.each}
    write(RESULTS, {"machine": {**machine(), **told}, "requests": rows})


def real_texts(data: Path, count: int) -> dict[str, str]:
    """Sections of manuals, in both languages by turns."""
    found: dict[str, list[str]] = {"en": [], "zh": []}
    with lzma.open(data / "train" / "sections.jsonl.xz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if len(found[row["lang"]]) < count // 2 and len(row["body"]) <= 600:
                found[row["lang"]].append(row["body"])
    both = chain.from_iterable(zip_longest(found["en"], found["zh"]))
    return {f"section-{number}": text for number, text in enumerate(filter(None, both))}


def questions(data: Path) -> Iterator[str]:
    """Real questions in both languages, each once."""
    found: list[str] = []
    for name in QUESTIONS:
        lines = (data / "dev" / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        found += [json.loads(line)["text"] for line in lines]
    found = list(dict.fromkeys(found))
    random.Random(5).shuffle(found)
    return iter(found)


def fill(folder: Path, texts: dict[str, str], projects: int, data: Path, vectors: Path) -> None:
    """A data folder with the texts in so many projects, the skills, a memory and a home; once."""
    if (folder / "filled").exists():
        return
    with tarfile.open(data / "dev" / "skills.tar.xz") as archive:
        archive.extractall(folder / "sources", filter="data")
    # The same texts go to several folders and are embedded once.
    with homing.open(folder, settings=Settings(), embedder=remembered(LocalProvider(), vectors)) as app:
        app.skills.scan(folder / "sources" / "skills")
        for number, (name, text) in enumerate(texts.items()):
            app.documents.save(f"project-{number % projects}", name, text)
        for text in list(texts.values())[:500]:
            app.memory.remember("observation", text[:200])
        app.devices.load(HOME)
        while not (app.documents.flush(60) and app.engine.flush(60)):
            time.sleep(0.5)
    (folder / "filled").touch()


@contextmanager
def floor(place: Path) -> Iterator[tuple[int, str]]:
    """The floor as a process: its id and address."""
    command = [sys.executable, str(FLOOR), str(place / "texts.jsonl"), str(place / "vectors.npy")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        try:
            yield process.pid, f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


Request = tuple[str, str, dict[str, Any] | None]
"""Method, path, body."""


def kinds(asked: Iterator[str]) -> dict[str, tuple[str, Any]]:
    """What is asked of whom, by name; a body is made anew for each request."""

    def searching(path: str, *, ours: bool) -> Any:
        return lambda: ("POST", path, {"query": next(asked), "limit": LIMIT} | ({"weaker": True} if ours else {}))

    everything = {
        f"everything, {count} projects": (f"{count}-projects", searching("/search", ours=True)) for count in PROJECTS
    }
    sentences = iter(lambda: random.choice(("打开除卧室以外的灯", "turn the 老伙计 off", "客厅的灯开着吗")), "")
    return {
        "floor: search": ("floor", searching("/search", ours=False)),
        "documents": ("1-projects", searching("/documents/project-0/search", ours=True)),
        **everything,
        "floor: empty route": ("floor", lambda: ("GET", "/empty", None)),
        "health": ("1-projects", lambda: ("GET", "/health", None)),
        "device ask": ("1-projects", lambda: ("POST", "/devices/ask", {"text": next(sentences)})),
    }


def measured(place: Path, asked: Iterator[str], rounds: int, each: int) -> list[dict[str, Any]]:
    """Every kind of request in turns, a few at a time."""
    spent: dict[str, list[float]] = defaultdict(list)
    waited: dict[str, list[float]] = defaultdict(list)
    with ExitStack() as held:
        servers: dict[str, tuple[int, http.client.HTTPConnection]] = {}
        pid, address = held.enter_context(floor(place))
        servers["floor"] = pid, http.client.HTTPConnection(address, timeout=60)
        for count in PROJECTS:
            process, address = held.enter_context(serving(place / f"{count}-projects"))
            servers[f"{count}-projects"] = process.pid, http.client.HTTPConnection(address.removeprefix("http://"))
        for turn in range(rounds + 1):
            for name, (server, made) in kinds(asked).items():
                pid, connection = servers[server]
                connection.close()  # Idle for long, it was closed at the other end; asking opens it again.
                ask(connection, made())
                before, times = processor_seconds(pid), []
                for _ in range(each):
                    times.append(ask(connection, made()))
                if turn:  # The first round warms up.
                    spent[name].append((processor_seconds(pid) - before) / each)
                    waited[name] += times
        memory = {server: round(resident(pid) / 1024) for server, (pid, _) in servers.items()}
    by_floor = {name: statistics.mean(spent[name]) for name in spent}
    return [
        {
            "request": name,
            "CPU ms": round(1000 * statistics.mean(spent[name]), 2),
            "lowest round": round(1000 * min(spent[name]), 2),
            "of the floor": round(by_floor[name] / by_floor["floor: search"], 2),
            "of documents": round(by_floor[name] / by_floor["documents"], 2),
            "wall p50 ms": round(1000 * statistics.median(waited[name]), 2),
            "wall p95 ms": round(1000 * statistics.quantiles(waited[name], n=20)[-1], 2),
            "server MB": memory[server],
        }
        for name, (server, _) in kinds(asked).items()
    ]


def ask(connection: http.client.HTTPConnection, request: Request) -> float:
    """Seconds until the answer is there, which must be one."""
    method, path, body = request
    content = None if body is None else json.dumps(body)
    started = time.perf_counter()
    connection.request(method, path, content, {"content-type": "application/json"} if content else {})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{method} {path}: {answer.status} {text[:300]!r}")
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
