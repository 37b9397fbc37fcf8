"""What an edit, a save, a reindex and a search in documents cost.

    python bench/documents.py edits [--peers PYTHON]     # texts embedded again for an edit, beside two frameworks
    python bench/documents.py saves                      # what save() takes until it is durable, by the size
    python bench/documents.py reindex [--chunks 2000]    # chunks a second, with and without somebody writing
    python bench/documents.py search [--chunks 100000]   # answers while somebody writes
    python bench/documents.py isolation [--chunks 100000]  # a collection per project, or one with a filter
    python bench/documents.py all [--peers PYTHON]

Each part writes its tables into results/documents.json beside those of the others. `edits` counts texts that reach the
model, with the cache that an app has by default; the peers have none. `saves` types at one place and goes to another
now and then, a save every fiftieth of a second, and tells the processor time of the thread that saves beside the time
on the clock; beside it stands what a loop of a thousand empty rounds takes at the same time, which is how long the
interpreter and the machine keep anybody waiting. In `reindex` and `search` somebody types into a document meanwhile, a
save every tenth of a second. Vectors are random except where the model is named.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from homing.documents import DocumentService
from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider, Kind
from homing.engine import Engine
from homing.errors import ProviderUnavailable
from homing.records import VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.stores.store import SearchOptions
from homing.vectors import Matrix, normalise
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "documents.json"
WORKER = Path(__file__).parent / "workers" / "editing_peer_worker.py"
WIDTH = 384
TYPING = 0.1
CHARACTERS = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工"
    "也能下过子说产种面而方后多定行学法所民得经"
)
WORDS = ["灯塔", "钥匙", "石榴", "harbour", "渡口", "书房", "lantern", "白鹭"]


class Random:
    """Embeds nothing: unit vectors by chance. `texts` counts what was asked for; `down` makes every call fail."""

    id, dimensions, scale = f"bench/random@{WIDTH}", WIDTH, None

    def __init__(self) -> None:
        self._chance = np.random.default_rng(7)
        self.texts = 0
        self.down = False

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        if self.down:
            raise ProviderUnavailable("off for the moment")
        self.texts += len(texts)
        return normalise(self._chance.standard_normal((len(texts), WIDTH), dtype=np.float32))

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        return [False] * len(texts)


def paragraphs(count: int, length: int = 34, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [
        f"{chance.choice(WORDS)}，{''.join(chance.choices(CHARACTERS, k=length))}，第{number}段。"
        for number in range(count)
    ]


@contextmanager
def opened(embedder: EmbeddingProvider | None, folder: Path | None = None) -> Iterator[DocumentService]:
    with ExitStack() as held:
        at = folder or Path(held.enter_context(tempfile.TemporaryDirectory()))
        store = SqliteStore(at / "homing.db")
        engine = Engine(store, embedder)
        try:
            yield DocumentService(engine)
        finally:
            engine.worker.stop(5, drain=False)
            store.close()


@contextmanager
def somebody_typing(service: DocumentService, project: str = "typing") -> Iterator[list[float]]:
    """Saves a chapter of 500 paragraphs every tenth of a second, one character longer each time; yields the times."""
    parts = paragraphs(500, seed=9)
    taken: list[float] = []
    stop = threading.Event()

    def write_on() -> None:
        at = 250
        while not stop.wait(TYPING):
            parts[at] += "字"
            if len(parts[at]) > 120:
                at = (at + 1) % len(parts)
            text = "\n\n".join(parts)
            started = time.perf_counter()
            service.save(project, "chapter", text)
            taken.append((time.perf_counter() - started) * 1000)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        yield taken
    finally:
        stop.set()
        writer.join()


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def told(values: Sequence[float], *shares: float) -> dict[str, float]:
    return {f"p{round(share * 100)} ms": round(percentile(values, share), 2) for share in shares}


# Edits


def steps() -> list[dict[str, Any]]:
    parts = paragraphs(1000, length=100)
    text = "\n\n".join(parts)
    word = text.replace("第500段", "第五百段")
    return [
        {"name": "change one word", "before": [text], "after": word},
        {"name": "insert a paragraph at the top", "before": [text], "after": "新的第一段写在最前面。\n\n" + text},
        {
            "name": "move a chapter of 50",
            "before": [text],
            "after": "\n\n".join(parts[:100] + parts[150:700] + parts[100:150] + parts[700:]),
        },
        {"name": "undo the change", "before": [text, word], "after": text},
        {"name": "LF to CRLF", "before": [text], "after": text.replace("\n", "\r\n")},
    ]


def edits(chosen: argparse.Namespace) -> dict[str, Any]:
    todo = steps()
    counted = {"Homing": [homing_embeds(step) for step in todo]}
    versions: dict[str, str] = {}
    if chosen.peers:
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(todo, file)
            file.flush()
            done = subprocess.run([chosen.peers, str(WORKER), file.name], capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout.splitlines()[-1])
        counted |= answer["embedded"]
        versions = answer["versions"]
    rows = [
        {
            "embedded again for": name,
            "the first text": counts[0]["first"],
            **{step["name"]: count["edit"] for step, count in zip(todo, counts, strict=True)},
        }
        for name, counts in counted.items()
    ]
    show("Texts that reach the model, for edits of a novel of 1,000 paragraphs", rows)
    return {"edits": rows, "versions": versions}


def homing_embeds(step: dict[str, Any]) -> dict[str, int]:
    model = Random()
    with tempfile.TemporaryDirectory() as folder:
        cached = Cached(model, Path(folder) / "cache.db")
        with opened(cached) as service:
            for text in step["before"]:
                service.save("p", "novel", text)
                service.flush()
            first = model.texts
            service.save("p", "novel", step["after"])
            service.flush()
        cached.close()
    return {"first": first, "edit": model.texts - first}


# Saves


def saves(chosen: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for count, rounds in ((100, 300), (1_000, 300), (10_000, 200), (100_000, 60)):
        rows.append(saves_of(count, rounds))
    show("save() until it is durable, while the background embeds, by the size of the document", rows)
    return {"saves": rows}


def saves_of(count: int, rounds: int) -> dict[str, Any]:
    parts = paragraphs(count)
    text = "\n\n".join(parts)
    typist = Typist(parts)
    with opened(Random()) as service:
        first = timed(lambda: service.save("p", "novel", text)) / 1000
        taken, worked, nothing = [], [], []
        for _ in range(rounds):
            text = typist.text()
            before = time.thread_time()
            taken.append(timed(lambda text=text: service.save("p", "novel", text)))
            worked.append((time.thread_time() - before) * 1000)
            time.sleep(0.02)
            text = "\n\n".join(parts)
            nothing.append(timed(do_nothing))
        return {
            "document": f"{len(text.encode()) / 1e6:.2f} MB",
            "paragraphs": count,
            "first save s": round(first, 2),
            **told(taken, 0.5, 0.99),
            "longest ms": round(max(taken), 2),
            "processor, p50 ms": round(statistics.median(worked), 2),
            "doing nothing, p99 ms": round(percentile(nothing, 0.99), 2),
        }


class Typist:
    """Writes one more character each time, mostly where the last one was."""

    def __init__(self, parts: list[str]) -> None:
        self._parts = parts
        self._chance = random.Random(2)
        self._place = len(parts) // 2

    def text(self) -> str:
        if self._chance.random() < 0.03:
            self._place = self._chance.randrange(len(self._parts))
        self._parts[self._place] += "改"
        return "\n\n".join(self._parts)


def do_nothing() -> None:
    for _ in range(1_000):
        pass


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


# Reindexing


def reindex(chosen: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for model, count in (("bundled", chosen.chunks or 2_000), ("random vectors", 10 * (chosen.chunks or 2_000))):
        for typing in (False, True):
            rows.append(reindexed(model, count, typing=typing))
    show("Chunks a second while reindexing", rows)
    return {"reindex": rows}


def reindexed(model: str, count: int, *, typing: bool) -> dict[str, Any]:
    inner: EmbeddingProvider = LocalProvider() if model == "bundled" else Random()
    embedder = Switch(inner)
    with opened(embedder) as service, ExitStack() as held:
        embedder.down = True
        service.save("p", "novel", "\n\n".join(paragraphs(count, length=60)))
        embedder.down = False
        inner.embed(["warm up"])
        taken = held.enter_context(somebody_typing(service)) if typing else []
        started = time.perf_counter()
        report = service.reindex("p")
        seconds = time.perf_counter() - started
        assert report.waiting == 0
        return {
            "model": model,
            "chunks": count,
            "somebody types": "yes" if typing else "no",
            "chunks/s": round(count / seconds),
            "save() p99 ms": round(percentile(taken, 0.99), 2) if taken else "",
        }


class Switch:
    """A provider that can be turned off."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider
        self.down = False
        self.id, self.dimensions, self.scale = provider.id, provider.dimensions, provider.scale

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        if self.down:
            raise ProviderUnavailable("off for the moment")
        return self._provider.embed(texts, kind=kind)

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        return self._provider.truncated(texts)


# Search


def search(chosen: argparse.Namespace) -> dict[str, Any]:
    count = chosen.chunks or 100_000
    rows = []
    with opened(Random()) as service:
        for number in range(20):
            service.save("p", f"book {number}", "\n\n".join(paragraphs(count // 20, seed=number)))
        service.flush()
        for typing in (False, True):
            with ExitStack() as held:
                # Into the project that is searched: what is typed is part of what is found.
                taken = held.enter_context(somebody_typing(service, "p")) if typing else []
                for mode in ("semantic", "keyword", "hybrid"):
                    rows.append(searched(service, count, mode, typing, taken))
    show("A search, while somebody types into the same project or not", rows)
    return {"search": rows}


def searched(service: DocumentService, count: int, mode: Any, typing: bool, taken: Sequence[float]) -> dict[str, Any]:
    chance = random.Random(5)
    times = []
    for _ in range(60):
        query = f"{chance.choice(WORDS)}{''.join(chance.choices(CHARACTERS, k=4))}"
        times.append(timed(lambda query=query: service.search("p", query, mode=mode, min_score=None)))
    return {
        "mode": mode,
        "chunks": count,
        "somebody types": "yes" if typing else "no",
        **told(times, 0.5, 0.95),
        "save() p99 ms": round(percentile(taken, 0.99), 2) if taken else "",
    }


# Isolation


def isolation(chosen: argparse.Namespace) -> dict[str, Any]:
    """One project of ten thousand chunks and one of five hundred, among a hundred thousand of others."""
    count = chosen.chunks or 100_000
    shares = {"large": count // 10, "small": count // 200}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for apart in (True, False):
            store = SqliteStore(Path(folder) / f"{apart}.db")
            fill(store, count, shares, apart=apart)
            for project in shares:
                rows.append(asked(store, project, shares[project], apart=apart))
            store.close()
    show("A project among others: a collection of its own, or a filter", rows)
    return {"isolation": rows}


def fill(store: SqliteStore, count: int, shares: dict[str, int], *, apart: bool) -> None:
    embedder = Random()
    projects = [*shares, "others"]
    sizes = [*shares.values(), count - sum(shares.values())]
    for project, size in zip(projects, sizes, strict=True):
        texts = paragraphs(size, seed=len(project))
        for start in range(0, size, 2_000):
            part = texts[start : start + 2_000]
            store.upsert(
                VectorRecord(
                    f"{project}.{start + at}",
                    project if apart else "documents",
                    row,
                    {} if apart else {"project": project},
                    text,
                    embedder.id,
                )
                for at, (text, row) in enumerate(zip(part, embedder.embed(part), strict=True))
            )


def asked(store: SqliteStore, project: str, size: int, *, apart: bool) -> dict[str, Any]:
    collection = project if apart else "documents"
    options = SearchOptions({} if apart else {"project": project})
    chance, rows = random.Random(3), Random()
    vectors, words = [], []
    store.search(collection, rows.embed(["x"])[0], 20, options)
    for _ in range(40):
        query = f"{chance.choice(WORDS)}{''.join(chance.choices(CHARACTERS, k=4))}"
        vector = rows.embed([query])[0]
        vectors.append(timed(lambda vector=vector: store.search(collection, vector, 20, options)))
        words.append(timed(lambda query=query: store.search_text(collection, query, 20, options)))
    return {
        "kept apart by": "collection" if apart else "metadata filter",
        "project": size,
        "vectors p50 ms": round(statistics.median(vectors), 2),
        "words p50 ms": round(statistics.median(words), 2),
    }


PARTS = {"edits": edits, "saves": saves, "reindex": reindex, "search": search, "isolation": isolation}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--peers", help="a Python with langchain-core, langchain-text-splitters and llama-index-core")
    parser.add_argument("--chunks", type=int)
    chosen = parser.parse_args()
    result: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    result["machine"] = machine()
    for name in PARTS if chosen.part == "all" else [chosen.part]:
        started = time.perf_counter()
        result |= PARTS[name](chosen)
        print(f"{name}: {time.perf_counter() - started:.0f} s")
    order = ("machine", "versions", *PARTS)
    write(RESULTS, {key: result[key] for key in order if key in result})


if __name__ == "__main__":
    main()
