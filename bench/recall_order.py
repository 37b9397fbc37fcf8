"""What recall brings back: the nearest only, or words with a say; in one collection and in several.

    python bench/recall_order.py PASSAGES [PASSAGES ...] [--questions 400]

A folder of passages holds `corpus.jsonl` (id, text), `queries.jsonl` (qid, text) and `qrels.jsonl` (qid, did). The
passages are put into one collection, then spread over four, evenly and unevenly. `first` and `in five` are the shares
of questions whose passage came first or among five; `nearest` is how often the nearest of the five was right, which
`RAGService.retrieve` puts first.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider
from homing.memory import RAGService
from homing.records import Mode, VectorRecord
from homing.stores.sqlite.store import SqliteStore
from report import machine, show, write

HERE = Path(__file__).parent
MODES: tuple[Mode, ...] = ("semantic", "hybrid")
SPREADS: Mapping[str, Callable[[int], int]] = {
    "one": lambda chance: 0,
    "four, even": lambda chance: chance % 4,
    "four, uneven": lambda chance: 0 if chance < 15 else 1 if chance < 100 else 2 if chance < 350 else 3,
}
"""By a number from 0 to 999 that is drawn from the id."""


@dataclass(frozen=True)
class Passages:
    """A corpus with questions, and which passages answer each."""

    name: str
    texts: Mapping[str, str]
    questions: Mapping[str, str]
    answers: Mapping[str, set[str]]

    @classmethod
    def read(cls, folder: Path, limit: int) -> Passages:
        """The three files of a folder, with at most so many of its questions: every n-th."""
        answers: dict[str, set[str]] = {}
        for row in _lines(folder / "qrels.jsonl"):
            answers.setdefault(row["qid"], set()).add(row["did"])
        rows = _lines(folder / "queries.jsonl")
        chosen = rows[:: max(1, len(rows) // limit)][:limit]
        questions = {row.get("qid") or row["id"]: row.get("text") or row["query"] for row in chosen}
        return cls(folder.name, {row["id"]: row["text"] for row in _lines(folder / "corpus.jsonl")}, questions, answers)


def measure(passages: Passages, spread: str, embedder: EmbeddingProvider, folder: Path) -> list[dict[str, Any]]:
    """One row per mode."""
    store = SqliteStore(folder / f"{passages.name}-{spread}.db")
    place = {key: f"c{SPREADS[spread](zlib.crc32(key.encode()) % 1000)}" for key in passages.texts}
    rows = embedder.embed(list(passages.texts.values()))
    store.upsert(
        VectorRecord(key, place[key], row, {}, text, embedder.id)
        for (key, text), row in zip(passages.texts.items(), rows, strict=True)
    )
    rag = RAGService(store=store, embedder=embedder, collections=sorted(set(place.values())))
    measured = [_measure(passages, spread, rag, mode) for mode in MODES]
    store.close()
    return measured


def _measure(passages: Passages, spread: str, rag: RAGService, mode: Mode) -> dict[str, Any]:
    first = nearest = in_five = 0
    for key, question in passages.questions.items():
        answers = passages.answers[key]
        found = list(rag.recall(question, mode=mode, limit=5, deadline=60))
        in_five += any(hit.id in answers for hit in found)
        first += bool(found) and found[0].id in answers
        nearest += bool(found) and max(found, key=lambda hit: hit.cosine or 0.0).id in answers
    total = len(passages.questions)
    return {
        "passages": passages.name,
        "collections": spread,
        "mode": mode,
        "first": round(first / total, 3),
        "nearest": round(nearest / total, 3),
        "in five": round(in_five / total, 3),
        "questions": total,
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def main() -> None:
    """Measure every folder in every spread and mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", nargs="+", type=Path)
    parser.add_argument("--questions", type=int, default=400, help="how many of each folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        embedder = Cached(LocalProvider(), Path(folder) / "cache.db", by_kind=False)
        rows = [
            row
            for one in chosen.passages
            for spread in SPREADS
            for row in measure(Passages.read(one, chosen.questions), spread, embedder, Path(folder))
        ]
        model = embedder.id
        embedder.close()
    show("Recall", rows)
    write(HERE / "results" / "recall_order.json", {"machine": machine(), "model": model, "rows": rows})


if __name__ == "__main__":
    main()
