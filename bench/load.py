"""A server under fifty clients that ask without pause: how much it answers, how fast, and whether memory stays flat.

    python bench/load.py [--seconds 60] [--clients 50] [--documents 10000] [--skills 1000] [--work FOLDER]

Two servers in turn, each `homing serve` as a process of its own over a folder of documents, skills, memory and a home,
asked over real sockets by clients in another process: one with the bundled model, one whose model is behind an API that
is dead, so that every answer is by keywords. Four of ten requests search documents, two everything, two skills, one
memory; the rest saves documents and speaks to devices. Most questions were never asked before.

`--work` keeps the folders for the next run: making them takes longer than a short run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import homing
from homing.config import Settings
from homing.testing.loopback import LoopbackApi
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "load.json"
PROJECTS = 10
WARM = 10.0
"""Seconds of asking before anything is counted: until then threads start and caches fill."""
WORDS = """
    灯塔 孤独 海浪 会议 发票 客户 提交 代码 菜谱 鸡蛋 旅行 行李 天气 音乐 考试 医生 花园 邻居 火车 咖啡
    lighthouse lonely wave meeting invoice customer commit code recipe egg travel luggage weather music exam
    doctor garden neighbour train coffee
"""
CHOICE = WORDS.split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--skills", type=int, default=1_000)
    parser.add_argument("--work", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="homing-load-") as temporary:
        place = asked.work or Path(temporary)
        rows, routes = [], []
        alive, dead = place / "alive", place / "dead"
        fill(alive, asked.documents, asked.skills)
        move_behind_api(alive, dead)
        for name, data in (("bundled model", alive), ("model down", dead)):
            with serving(data) as (process, address):
                row, by_route = measure(address, process.pid, asked.clients, asked.seconds)
            rows.append({"server": name, **row})
            routes += [{"server": name, **one} for one in by_route]
    show(f"{asked.clients} clients, {asked.documents} documents, {asked.skills} skills", rows)
    show("by request", routes)
    told = {"clients": asked.clients, "seconds": asked.seconds, "documents": asked.documents, "skills": asked.skills}
    write(RESULTS, {"machine": {**machine(), **told}, "servers": rows, "requests": routes})


def sentence(chance: random.Random, length: int) -> str:
    """A text in one language or both, out of a few words and numbers."""
    return " ".join(
        f"{chance.choice(CHOICE)}{chance.randrange(100) if chance.random() < 0.2 else ''}" for _ in range(length)
    )


def fill(data: Path, documents: int, skills: int) -> None:
    """Documents, skills, memory and a home, embedded; left as it is where it was made before."""
    if (data / "filled").exists():
        return
    started = time.perf_counter()
    chance = random.Random(7)
    data.mkdir(parents=True, exist_ok=True)
    for number in range(skills):
        folder = data / "skill-folders" / f"skill-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"---\nname: skill-{number}\ndescription: {sentence(chance, 12)}\n---\n{sentence(chance, 40)}\n"
        (folder / "SKILL.md").write_text(text, encoding="utf-8")
    with homing.open(data, settings=Settings()) as app:
        app.skills.scan(data / "skill-folders")
        for number in range(documents):
            app.documents.save(f"project-{number % PROJECTS}", f"document-{number}", sentence(chance, 12))
        for _ in range(500):
            app.memory.remember("observation", sentence(chance, 12))
        app.devices.load(Path(homing.__file__).parent / "examples" / "home.json")
        while not (app.documents.flush(60) and app.engine.flush(60)):
            time.sleep(0.5)
    (data / "filled").touch()
    print(f"filled in {time.perf_counter() - started:.0f} s", flush=True)


def move_behind_api(alive: Path, dead: Path) -> None:
    """The same folder, embedded by a model behind an API that is gone afterwards."""
    if (dead / "filled").exists():
        return
    started = time.perf_counter()
    shutil.copytree(alive, dead, dirs_exist_ok=True, ignore=shutil.ignore_patterns("filled"))
    with LoopbackApi() as api, homing.open(dead, settings=Settings()) as app:
        config = app.models.config
        config.ensure_default_embedding_model()
        config.create_provider("remote", "openai", api_key="unused", base_url=api.url + "/v1")
        model = config.create_model("remote", "text-embedding-3-small", model_config={"dimensions": 64})
        app.switch.make_default(model)
        app.switch.run()
        app.skills.scan(dead / "skill-folders")
    (dead / "filled").touch()
    print(f"embedded by another model in {time.perf_counter() - started:.0f} s", flush=True)


@contextmanager
def serving(data: Path, *options: str, concurrent: int = 8) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`homing serve` on a free port, and its address."""
    command = [sys.executable, "-c", "from homing.cli.main import run; run()", "serve", "--json", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--log", "none", "--data", str(data), *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOMING_SERVER__CONCURRENT": str(concurrent)},
    )
    assert process.stdout is not None
    told = ""
    for line in process.stdout:
        told += line
        if line == "}\n":
            break
    try:
        yield process, json.loads(told)["address"].rstrip("/")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        process.stdout.close()


@dataclass
class Asked:
    """What the clients saw."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[int] = field(default_factory=Counter)
    degraded: int = 0
    lost: int = 0
    took: float = 0.0


def measure(address: str, pid: int, clients: int, seconds: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Ask for a while, from a process of its own; what was answered, and the memory meanwhile."""
    with get_context("spawn").Pool(1) as pool:
        pool.apply(ask, (address, clients, WARM, 1))
        before, spent = resident(pid), processor_seconds(pid)
        asking = pool.apply_async(ask, (address, clients, seconds, 2))
        asking.wait(seconds / 2)
        half = resident(pid)
        seen: Asked = asking.get()
        after, spent = resident(pid), processor_seconds(pid) - spent
    every = sorted(one for times in seen.seconds.values() for one in times)
    answered = sum(seen.statuses.values())
    row = {
        "requests": answered,
        "per second": round(answered / seen.took, 1),
        **percentiles(every),
        "CPU ms each": round(1000 * spent / max(1, answered), 1),
        "errors": answered - seen.statuses[200] + seen.lost,
        "degraded %": round(100 * seen.degraded / max(1, answered)),
        "MB at begin": round(before / 1024),
        "MB at half": round(half / 1024),
        "MB at end": round(after / 1024),
    }
    routes = [
        {"request": name, "requests": len(times), **percentiles(sorted(times))} for name, times in seen.seconds.items()
    ]
    return row, sorted(routes, key=lambda one: str(one["request"]))


def percentiles(times: list[float]) -> dict[str, float]:
    """Milliseconds by share of requests."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {f"p{share} ms": round(cuts[share - 1] * 1000, 1) for share in (50, 95, 99)}


def resident(pid: int) -> int:
    """Kilobytes of memory that a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def processor_seconds(pid: int) -> float:
    """Seconds that a process has computed for, on all cores together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(address: str, clients: int, seconds: float, seed: int) -> Asked:
    """Many clients at once, each asking one thing after the other."""
    host, _, port = address.removeprefix("http://").partition(":")

    async def together() -> Asked:
        seen = Asked()
        started = time.perf_counter()
        end = started + seconds
        await asyncio.gather(
            *(client(host, int(port), end, random.Random(seed * 1000 + one), seen) for one in range(clients))
        )
        seen.took = time.perf_counter() - started
        return seen

    return asyncio.run(together())


async def client(host: str, port: int, end: float, chance: random.Random, seen: Asked) -> None:
    """One connection, one request after the other."""
    reader, writer = await asyncio.open_connection(host, port)
    while time.perf_counter() < end:
        name, method, path, body = request(chance)
        content = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\n"
        started = time.perf_counter()
        writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        try:
            status, answer = await read(reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            seen.lost += 1
            reader, writer = await asyncio.open_connection(host, port)
            continue
        seen.seconds[name].append(time.perf_counter() - started)
        seen.statuses[status] += 1
        seen.degraded += b'"degraded":true' in answer
    writer.close()


async def read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of an answer that says how long it is."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return int(head[9:12]), await reader.readexactly(length)


def request(chance: random.Random) -> tuple[str, str, str, dict[str, Any]]:
    """What people ask, in the shares in which they do."""
    query = sentence(chance, chance.randint(2, 6))
    project = f"project-{chance.randrange(PROJECTS)}"
    kind = chance.random()
    if kind < 0.4:
        return "search documents", "POST", f"/documents/{project}/search", {"query": query, "limit": 10}
    if kind < 0.6:
        return "search everything", "POST", "/search", {"query": query, "project": project}
    if kind < 0.8:
        return "find skills", "POST", "/skills/search", {"query": query}
    if kind < 0.9:
        return "recall", "POST", "/memory/recall", {"query": query}
    if kind < 0.95:
        document = f"/documents/{project}/note-{chance.randrange(200)}"
        return "save a document", "PUT", document, {"text": sentence(chance, 25)}
    return "ask a home", "POST", "/devices/ask", {"text": chance.choice(("打开除卧室以外的灯", "turn the 老伙计 off"))}


if __name__ == "__main__":
    main()
