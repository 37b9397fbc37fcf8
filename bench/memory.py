"""Recall over four collections at once and one after the other; what saving costs; how fast the background embeds.

    python bench/memory.py [--each 25000] [--rounds 60] [--repeats 5] [--texts 2000]

At once and one after the other take turns on each question, and of the repeats the fastest counts: what else the
machine does is not what is compared. Where all cores are busy there is nothing to gain from asking at once.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider, Kind
from homing.engine import Engine
from homing.memory import KnowledgeStore, Memory
from homing.memory.content import COLLECTIONS
from homing.records import VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.stores.store import Store
from homing.vectors import Matrix, normalise
from report import machine, show, write

HERE = Path(__file__).parent
WIDTH = 384
VOCABULARY = 4_000
SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ra", "su", "te", "vo", "xi", "zu")


class RandomVectors:
    """Embeds nothing: unit vectors by chance, so that what is measured is the search and not the model."""

    id, dimensions, scale = f"bench/random@{WIDTH}", WIDTH, None

    def __init__(self) -> None:
        self._chance = np.random.default_rng(7)

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        return normalise(self._chance.standard_normal((len(texts), WIDTH), dtype=np.float32))

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        return [False] * len(texts)


class Words:
    """Texts in two made-up languages whose words are as unevenly frequent as real ones (Zipf)."""

    def __init__(self, seed: int) -> None:
        made = random.Random(1)
        self._words = ["".join(made.choices(SYLLABLES, k=3)) for _ in range(VOCABULARY // 2)]
        self._words += ["".join(chr(made.randrange(0x4E00, 0x5200)) for _ in range(2)) for _ in range(VOCABULARY // 2)]
        made.shuffle(self._words)
        self._weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
        self._chance = random.Random(seed)

    def question(self) -> str:
        """Four words that say something: none of the commonest."""
        return " ".join(self._chance.sample(self._words[20:], 4))

    def text(self, words: int = 30) -> str:
        """Some words by their frequency."""
        return " ".join(self._chance.choices(self._words, self._weights, k=words))


def fill(store: Store, each: int) -> None:
    """Records with their vectors in large batches: the setting, not what is measured."""
    words, embedder = Words(3), RandomVectors()
    for collection in COLLECTIONS:
        for start in range(0, each, 5_000):
            texts = {f"{at:06}": words.text() for at in range(start, min(each, start + 5_000))}
            rows = embedder.embed(list(texts.values()))
            store.upsert(
                VectorRecord(key, collection, row, {}, text, embedder.id)
                for (key, text), row in zip(texts.items(), rows, strict=True)
            )


def opened(folder: Path, embedder: EmbeddingProvider) -> tuple[Memory, Engine]:
    """A memory in a folder."""
    engine = Engine(SqliteStore(folder / "homing.db"), embedder)
    return Memory(engine), engine


def recall(folder: Path, each: int, rounds: int, repeats: int) -> dict[str, Any]:
    """The same questions at once and one collection after the other, taking turns."""
    memory, engine = opened(folder, RandomVectors())
    fill(engine.store, each)
    words = Words(11)
    questions = [words.question() for _ in range(rounds)]

    found: dict[str, Any] = {}
    for mode in ("hybrid", "semantic"):
        ways: dict[str, list[tuple[str, ...]]] = {
            "parallel": [COLLECTIONS],
            "serial": [(name,) for name in COLLECTIONS],
        }
        fastest: dict[str, list[float]] = {name: [] for name in ways}
        for question in questions:
            spent: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(repeats):
                for name, steps in ways.items():
                    started = time.perf_counter()
                    for collections in steps:
                        memory.recall(question, collections=collections, mode=mode)
                    spent[name].append((time.perf_counter() - started) * 1000)
            for name in ways:
                fastest[name].append(min(spent[name]))
        medians = {name: statistics.median(times) for name, times in fastest.items()}
        found[mode] = {
            "parallel_ms": round(medians["parallel"], 1),
            "serial_ms": round(medians["serial"], 1),
            "times faster": round(medians["serial"] / medians["parallel"], 2),
        }
    engine.close()
    engine.store.close()
    return found


def saving(folder: Path, model: EmbeddingProvider, count: int) -> dict[str, Any]:
    """What a save costs the caller while the background embeds with the real model, beside embedding in the call."""
    memory, engine = opened(folder, model)
    words = Words(5)
    texts = [words.text() for _ in range(count)]
    spent = []
    for text in texts:
        started = time.perf_counter()
        memory.remember("knowledge", text)
        spent.append((time.perf_counter() - started) * 1000)
    engine.close(None)
    engine.store.close()
    inline = []
    for text in texts[: count // 10]:
        started = time.perf_counter()
        model.embed([f"{text} inline"])
        inline.append((time.perf_counter() - started) * 1000)
    return {
        "saves": count,
        "p50_ms": round(statistics.median(spent), 2),
        "p99_ms": round(_p99(spent), 2),
        "embedding_in_the_call_p50_ms": round(statistics.median(inline), 2),
    }


def background(folder: Path, model: EmbeddingProvider, count: int) -> dict[str, Any]:
    """Texts per second from waiting to embedded, beside the model alone on the same texts in the same batches."""
    memory, engine = opened(folder, model)
    words = Words(9)
    texts = [words.text() for _ in range(count)]
    unembedded = KnowledgeStore(engine.store)
    for text in texts:
        unembedded.save(text)

    def embed() -> None:
        memory.reindex()
        engine.flush()

    through, through_cpu = _timed(embed)
    batches = [texts[at : at + 64] for at in range(0, count, 64)]
    alone, alone_cpu = _timed(lambda: [model.embed([f"{text} alone" for text in batch]) for batch in batches])
    engine.close()
    engine.store.close()
    return {
        "texts": count,
        "texts_per_s": round(count / through),
        "model_alone_per_s": round(count / alone),
        "share of the time that is the model's": round(alone_cpu / through_cpu, 2),
    }


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    started, started_cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - started_cpu


def _p99(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def _rss_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Run all three and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=25_000, help="records in each of the four collections")
    parser.add_argument("--rounds", type=int, default=60, help="questions")
    parser.add_argument("--repeats", type=int, default=5, help="times that each question is asked")
    parser.add_argument("--texts", type=int, default=2_000, help="texts to save and to embed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        for name in ("recall", "saving", "background"):
            (Path(folder) / name).mkdir()
        start = _rss_mb()
        recalled = recall(Path(folder) / "recall", chosen.each, chosen.rounds, chosen.repeats)
        after_recall = _rss_mb()
        model = LocalProvider()
        model.embed(["warm"])
        saved = saving(Path(folder) / "saving", model, chosen.texts)
        embedded = background(Path(folder) / "background", model, chosen.texts)
    memory = {"start_mb": start, "recall_peak_mb": after_recall, "with_the_model_peak_mb": _rss_mb()}
    show(
        f"Recall over {len(COLLECTIONS)} x {chosen.each} records",
        [{"mode": mode, **row} for mode, row in recalled.items()],
    )
    show("Saving", [saved])
    show("In the background", [embedded])
    show("Memory", [memory])
    write(
        HERE / "results" / "memory.json",
        {
            "machine": machine(),
            "records": chosen.each * len(COLLECTIONS),
            "recall": recalled,
            "saving": [saved],
            "background": [embedded],
            "memory": [memory],
        },
    )


if __name__ == "__main__":
    main()
