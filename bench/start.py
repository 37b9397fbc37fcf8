"""What a start costs: commands of the shell from nothing to the answer, and the memory of a server with much in it.

    python bench/start.py DATA [--documents 10000] [--skills 1000] [--many 5600] [--rounds 5] [--work FOLDER]

DATA as for `server.py`. Documents are real sections of manuals, skills are recombined from real ones: the head of one,
and parts of the bodies of two others. All of them have random vectors, which cost nothing to make and as much as any to
keep; questions are embedded by the bundled model. CPU is that of the process with all it starts, memory the most that
it ever held, of the server what it holds after some hundred searches. Modules have their bytecode, as where they were
installed. The folder with many skills is also weighed, and so are their SKILL.md files.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import homing
from homing.config import Settings
from homing.skills import Skill
from homing.skills.skill_file import parse_skill
from load import resident, serving
from report import machine, show, write
from server import HOME, ask, questions, real_texts
from skills import QuickDocuments

RESULTS = Path(__file__).parent / "results" / "start.json"
RUN = (sys.executable, "-c", "from homing.cli.main import run; run()")
ASKED = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--skills", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=5_600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="homing-start-") as temporary:
        place = asked.work or Path(temporary)
        full, many = place / f"{asked.documents}-{asked.skills}", place / f"0-{asked.many}"
        for folder, documents, skills in ((full, asked.documents, asked.skills), (many, 0, asked.many)):
            # Elsewhere: what is started from a large process is said to have been as large.
            filling = get_context("spawn").Process(target=fill, args=(folder, asked.data, documents, skills))
            filling.start()
            filling.join()
        question = "how do I deploy a container"
        commands = {
            "homing --help": ["--help"],
            "homing search": ["search", question, "--data", str(full)],
            f"homing skills find, {asked.many} skills": ["skills", "find", question, "--data", str(many)],
        }
        rows = started(commands, asked.rounds)
        rows.append(serving_row(full, asked))
        sources = sum(len(text.encode()) for text in recombined(asked.data, asked.many))
        on_disk = {"skills": asked.many, "disk MB": megabytes(many), "sources MB": round(sources / 1e6, 1)}
    show(f"{asked.rounds} starts of each, the files in the cache of the system", rows)
    show("On disk", [on_disk])
    write(RESULTS, {"machine": machine(), "starts": rows, "disk": [on_disk]})


def megabytes(folder: Path) -> float:
    """What the files of a folder hold."""
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


def recombined(data: Path, count: int) -> Iterator[str]:
    """The head of one skill, and half of the body of each of two others."""
    with tarfile.open(data / "dev" / "skills.tar.xz") as archive:
        files = [archive.extractfile(one) for one in archive.getmembers() if one.isfile()]
        texts = [file.read().decode(errors="replace") for file in files if file is not None]
    chance = random.Random(11)
    for _ in range(count):
        head, first, second = (chance.choice(texts) for _ in range(3))
        fence = head.find("\n---", 3)
        body = first[len(first) // 2 :] + "\n\n" + second[: len(second) // 2]
        yield f"{head[: fence + 4]}\n{body}" if fence > 0 else body


def _skill(text: str, number: int) -> Skill:
    return parse_skill(text.encode(), Path(f"/skills/skill-{number}")).skill


def fill(folder: Path, data: Path, documents: int, skills: int) -> None:
    """Documents and skills with vectors, and a home; once."""
    if (folder / "filled").exists():
        return
    with homing.open(folder, settings=Settings(), embedder=QuickDocuments()) as app:
        found = enumerate(recombined(data, skills))
        while some := list(islice(found, 200)):
            app.skills.index_skills([_skill(text, number) for number, text in some])
        for number, (name, text) in enumerate(real_texts(data, documents).items()):
            app.documents.save(f"project-{number % 10}", name, text)
        app.devices.load(HOME)
        while not (app.documents.flush(60) and app.engine.flush(60)):
            time.sleep(0.5)
    (folder / "filled").touch()


def started(commands: dict[str, list[str]], rounds: int) -> list[dict[str, Any]]:
    """Every command in turns, the first time to warm up."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    # What is installed has its bytecode; here the first start writes it, unless it was forbidden to.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for turn in range(rounds + 1):
        for name, arguments in commands.items():
            process = subprocess.Popen([*RUN, *arguments], stdout=subprocess.DEVNULL, env=environment)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{name} ended with {process.returncode}")
            if turn:
                spent[name].append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    return [
        {
            "what": name,
            "CPU s": round(statistics.median(cpu for cpu, _ in seen), 3),
            "MB": round(max(size for _, size in seen)),
        }
        for name, seen in spent.items()
    ]


def serving_row(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """The memory of a server that has searched."""
    with serving(folder) as (process, address):
        connection = http.client.HTTPConnection(address.removeprefix("http://"))
        for query in islice(questions(asked.data), ASKED):
            ask(connection, ("POST", "/search", {"query": query, "limit": 5}))
        size = resident(process.pid) / 1024
    what = f"server, {asked.documents} documents and {asked.skills} skills, {ASKED} searches over everything"
    return {"what": what, "CPU s": "", "MB": round(size)}


if __name__ == "__main__":
    main()
