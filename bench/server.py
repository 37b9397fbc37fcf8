"""What one answer of `homing serve` costs, beside the least that a server with the same model could do.

    python bench/server.py DATA [--work FOLDER] [--rounds 6] [--each 40] [--texts 2000] [--peers PYTHON]
    python bench/server.py DATA --workers 1 2 [--seconds 10] [--work FOLDER]

DATA is a folder with `train/sections.jsonl.xz` (`{lang, title, heading, body}` a line), golden sets below `dev/` and
`dev/skills.tar.xz`. The floor is a FastAPI application that embeds with the bundled model, asks FTS5, asks a matrix of
vectors and fuses (`workers/floor_server.py`), over the same texts. Chroma takes part where `--peers` names a Python
that has chromadb, fastapi and uvicorn: the same application with a collection of Chroma in the place of both legs
(`workers/chroma_server.py`), which knows no words. Three servers of ours have the texts in 1, 20 and 200 projects,
with the skills, a memory and a home. All are processes of their own, asked over real sockets in turns; no question is
asked twice of anybody. CPU is that of the server's process, on all its threads.

With `--workers` the question is how many document searches a second so many workers answer, each held to a core of its
own, the numbers taking turns. The load comes from wrk where it is installed, else from a process of our own that keeps
as many connections busy; either runs on the cores that are left, where there are any.

`--work` keeps the folders for the next run: embedding takes longer than measuring.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import lzma
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import homing
from homing.config import Settings
from homing.embedders.local import LocalProvider
from load import processor_seconds, resident, serving
from measures import remembered
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "server.json"
SCALING = RESULTS.with_name("workers.json")
WORKERS = Path(__file__).parent / "workers"
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
    parser.add_argument("--peers", help="a Python that has chromadb, fastapi and uvicorn")
    parser.add_argument("--workers", type=int, nargs="+", help="measure searches a second by the number of workers")
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="homing-server-") as temporary:
        place = asked.work or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        texts = real_texts(asked.data, asked.texts)
        (place / "texts.jsonl").write_text(
            "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()), encoding="utf-8"
        )
        for count in PROJECTS[: 1 if asked.workers else None]:
            fill(place / f"{count}-projects", texts, count, asked.data, place / "vectors")
        if asked.workers:
            found = list(questions(asked.data))
            rows = scaled(place / "1-projects", found, asked.workers, asked.rounds, asked.seconds)
            show(f"{len(texts)} texts, {LIMIT} hits, {asked.rounds} rounds of {asked.seconds:g} s", rows)
            write(SCALING, {"machine": {**machine(), "load": load_program(), "rounds": asked.rounds}, "workers": rows})
            return
        if not asked.peers:
            print("Chroma takes no part: --peers names no Python that has it")
        rows = measured(place, questions(asked.data), asked.rounds, asked.each, asked.peers)
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
def other(place: Path, python: str, worker: str, *more: Path) -> Iterator[tuple[int, str]]:
    """A server that is not ours, over the same texts and vectors, as a process: its id and address."""
    command = [python, WORKERS / worker, place / "texts.jsonl", place / "vectors.npy", *more]
    ours = str(Path(homing.__file__).parent.parent)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": ours}
    ) as process:
        assert process.stdout is not None
        try:
            yield process.pid, f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


Request = tuple[str, str, dict[str, Any] | None]
"""Method, path, body."""


def kinds(asked: Iterator[str], servers: Container[str]) -> dict[str, tuple[str, Any]]:
    """What is asked of those who take part, by name; a body is made anew for each request."""

    def searching(path: str, *, ours: bool) -> Any:
        return lambda: ("POST", path, {"query": next(asked), "limit": LIMIT} | ({"weaker": True} if ours else {}))

    everything = {
        f"everything, {count} projects": (f"{count}-projects", searching("/search", ours=True)) for count in PROJECTS
    }
    sentences = iter(lambda: random.choice(("打开除卧室以外的灯", "turn the 老伙计 off", "客厅的灯开着吗")), "")
    every = {
        "floor: search": ("floor", searching("/search", ours=False)),
        "Chroma: search": ("chroma", searching("/search", ours=False)),
        "documents": ("1-projects", searching("/documents/project-0/search", ours=True)),
        **everything,
        "floor: empty route": ("floor", lambda: ("GET", "/empty", None)),
        "health": ("1-projects", lambda: ("GET", "/health", None)),
        "device ask": ("1-projects", lambda: ("POST", "/devices/ask", {"text": next(sentences)})),
    }
    return {name: one for name, one in every.items() if one[0] in servers}


def measured(place: Path, asked: Iterator[str], rounds: int, each: int, peers: str | None) -> list[dict[str, Any]]:
    """Every kind of request in turns, a few at a time."""
    spent: dict[str, list[float]] = defaultdict(list)
    waited: dict[str, list[float]] = defaultdict(list)
    with ExitStack() as held:
        servers: dict[str, tuple[int, http.client.HTTPConnection]] = {}
        others = {"floor": (sys.executable, "floor_server.py")}
        if peers:
            others["chroma"] = (peers, "chroma_server.py", place / "chroma")
        for name, (python, worker, *more) in others.items():
            pid, address = held.enter_context(other(place, python, worker, *more))
            servers[name] = pid, http.client.HTTPConnection(address, timeout=60)
        for count in PROJECTS:
            process, address = held.enter_context(serving(place / f"{count}-projects"))
            servers[f"{count}-projects"] = process.pid, http.client.HTTPConnection(address.removeprefix("http://"))
        for turn in range(rounds + 1):
            for name, (server, made) in kinds(asked, servers).items():
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
        for name, (server, _) in kinds(asked, servers).items()
    ]


def scaled(data: Path, asked: list[str], workers: list[int], rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Searches a second by the number of workers, and what each cost."""
    rates: dict[int, list[float]] = defaultdict(list)
    costs: dict[int, list[float]] = defaultdict(list)
    memory: dict[int, float] = {}
    with ExitStack() as held:
        servers = {}
        for count in workers:
            process, address = held.enter_context(serving(data, "--workers", str(count), concurrent=8 * count))
            pids = children(process.pid) if count > 1 else [process.pid]
            for core, pid in enumerate(pids):
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    os.sched_setaffinity(int(thread.name), {core % (os.cpu_count() or 1)})
            servers[count] = pids, address.removeprefix("http://")
        for turn in range(rounds + 1):
            for count, (pids, address) in servers.items():
                before = sum(map(processor_seconds, pids))
                answered = pressed(address, asked, 8 * count, seconds if turn else 3.0, count)
                if turn:
                    rates[count].append(answered / seconds)
                    costs[count].append((sum(map(processor_seconds, pids)) - before) / max(1, answered))
                memory[count] = sum(map(resident, pids)) / 1024
    first = statistics.median(rates[workers[0]])
    return [
        {
            "workers": count,
            "searches a second": round(statistics.median(rates[count]), 1),
            f"of {workers[0]}": round(statistics.median(rates[count]) / first, 2),
            "CPU ms each": round(1000 * statistics.median(costs[count]), 2),
            "MB of all": round(memory[count]),
        }
        for count in workers
    ]


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def load_program() -> str:
    """What asks."""
    return "wrk" if shutil.which("wrk") else "asyncio"


def pressed(address: str, asked: list[str], connections: int, seconds: float, busy: int) -> int:
    """How many searches were answered while so many connections asked without pause."""
    bodies = [json.dumps({"query": one, "limit": LIMIT, "weaker": True}) for one in asked]
    path = "/documents/project-0/search"
    free = sorted(set(range(os.cpu_count() or 1)) - set(range(busy))) or list(range(os.cpu_count() or 1))
    if load_program() != "wrk":
        with get_context("spawn").Pool(max(1, min(4, len(free)))) as pool:
            each = max(1, connections // pool._processes)  # type: ignore[attr-defined]
            work = [(address, path, bodies, each, seconds, free, at) for at in range(pool._processes)]  # type: ignore[attr-defined]
            return sum(pool.starmap(press, work))
    with tempfile.NamedTemporaryFile("w", suffix=".lua", encoding="utf-8") as script:
        quoted = ",".join(json.dumps(one) for one in bodies)
        script.write(
            f"local bodies = {{{quoted}}}\nlocal at = 0\n"
            'request = function() at = at + 1; return wrk.format("POST", nil, '
            '{["content-type"]="application/json"}, bodies[at % #bodies + 1]) end\n'
            'done = function(summary) io.write("answered ", summary.requests - summary.errors.status, "\\n") end\n'
        )
        script.flush()
        threads = max(1, min(len(free), connections // 8))
        command = ["taskset", "-c", ",".join(map(str, free)), "wrk", f"-t{threads}", f"-c{connections}"]
        command += [f"-d{seconds:g}s", "--timeout", "30s", "-s", script.name, f"http://{address}{path}"]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(told.split("answered ")[1].split()[0])


def press(
    address: str, path: str, bodies: list[str], connections: int, seconds: float, cores: list[int], at: int
) -> int:
    """The same by ourselves, as cheaply as Python can: bytes that are ready are sent, and of an answer only its end is
    looked for."""
    os.sched_setaffinity(0, set(cores))
    host, _, port = address.partition(":")
    head = f"POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: "
    ready = [f"{head}{len(one.encode())}\r\n\r\n{one}".encode() for one in bodies]
    end, answered = time.monotonic() + seconds, 0

    async def one(number: int) -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection(host, int(port))
        turn = number * 97 + at * 31
        while time.monotonic() < end:
            writer.write(ready[turn % len(ready)])
            turn += connections
            top = await reader.readuntil(b"\r\n\r\n")
            length = int(top.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            answered += top.startswith(b"HTTP/1.1 200")
        writer.close()

    async def together() -> None:
        await asyncio.gather(*(one(number) for number in range(connections)))

    asyncio.run(together())
    return answered


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
