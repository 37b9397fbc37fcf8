"""What an app answers and when it stays silent: memories, and scores while a collection grows.

    python bench/answers.py DEV_FOLDER [--cache FOLDER] [--background sections.jsonl.xz]

Passages are remembered in an open app and recalled with the defaults of every surface; the fit that reads each set was
made without it and its twins. `kept` is the share of right first memories that the default cut leaves. With texts for
a background, the score of each question's own passage is read among 1,000 and among 100,000 texts.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import homing
from calibration import Set, read
from homing.embedders.local import LocalProvider
from homing.embedders.provider import Calibrated, EmbeddingProvider
from homing.engine.batch import embed_long
from homing.engine.ranking import score, similarity, worth
from homing.engine.search import cut
from homing.evaluation.golden import GoldenSet
from homing.memory import Memory
from homing.models.fitting import fit
from homing.records import VectorRecord
from homing.stores.registry import open_store
from homing.vectors import Fit, Scale
from measures import TALK, elsewhere, label, noise, read_sets, remembered, simplified
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "answers.json"
QUESTIONS, OTHERS = 300, 120
SIZES = (1_000, 100_000)


def without(name: str, sets: Sequence[Set]) -> Fit:
    """The fit of every set but this one and its twins."""
    return fit([list(one.asked.values()) for one in sets if simplified(one.name) != simplified(name)])


def scaled(embedder: EmbeddingProvider, fitted: Fit) -> EmbeddingProvider:
    """The same model, read by another fit."""
    assert embedder.scale is not None
    return Calibrated(embedder, Scale(embedder.scale.border, embedder.scale.steepness, fitted))


def answered(memory: Memory, questions: Sequence[str]) -> float:
    """The share of questions that get an answer."""
    return float(np.mean([bool(cut(memory.recall(one))) for one in questions]))


def memories(golden: GoldenSet, others: Sequence[str], embedder: EmbeddingProvider) -> dict[str, float]:
    """Passages as memories: what is found, what of it is kept, and what is answered that should not be."""
    with tempfile.TemporaryDirectory() as folder, homing.open(folder, embedder=embedder) as app:
        for key, text in golden.corpus.items():
            app.memory.remember("knowledge", text, entry_id=key)
        app.engine.flush()
        right, kept = 0, 0
        asked = golden.questions[:QUESTIONS]
        for one in asked:
            found = app.memory.recall(one.text)
            best = max(found, key=lambda hit: hit.score or 0.0, default=None)
            if best is not None and best.id in one.relevant:
                right += 1
                kept += any(hit.id == best.id for hit in cut(found))
        return {
            "first": right / len(asked),
            "kept": kept / max(right, 1),
            "elsewhere": answered(app.memory, others[:OTHERS]),
            "noise": answered(app.memory, noise()),
            "talk": answered(app.memory, TALK),
        }


def growth(golden: GoldenSet, background: Path, embedder: EmbeddingProvider) -> dict[str, float]:
    """The mean score of each question's own passage among few and many texts, and how far single ones move."""
    asked = [(one.text, next(iter(one.relevant))) for one in golden.questions[:QUESTIONS]]
    asked = [(text, key) for text, key in asked if key in golden.corpus]
    texts = dict(golden.corpus)
    with lzma.open(background, "rt", encoding="utf-8") as lines:
        more = (json.loads(line)["body"] for line in islice(lines, SIZES[-1]))
        texts |= {f"more-{at}": text for at, text in enumerate(more)}
        rest = SIZES[-1] - len(texts)
        written = [text for key, text in texts.items() if key.startswith("more-")]
        # Sections are fewer than a hundred thousand: the rest are halves of two of them.
        texts |= {
            f"mixed-{at}": written[at % len(written)][:400] + written[(at * 7 + 3) % len(written)][400:]
            for at in range(max(rest, 0))
        }
    asked_rows = embedder.embed([text for text, _ in asked], kind="query")
    own_rows = embed_long(embedder, [golden.corpus[key] for _, key in asked])
    cosines = (asked_rows * own_rows).sum(axis=1)
    read_at: dict[int, np.ndarray] = {}
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(f"sqlite:///{Path(folder) / 'texts.db'}")
            store.upsert(VectorRecord(key, "texts", None, {}, text) for key, text in islice(texts.items(), size))
            found = []
            for (text, key), cosine in zip(asked, cosines, strict=True):
                words = store.search_words("texts", text, 1)
                measured = store.measure("texts", [key], query=text)[0]
                near = similarity(float(cosine), *worth(measured.bm25, words))
                found.append(score(near, embedder.scale, words))
            store.close()
        read_at[size] = np.array(found)
    few, many = (read_at[size] for size in SIZES)
    return {
        "at 1,000": float(few.mean()),
        "at 100,000": float(many.mean()),
        "drift": float(many.mean() - few.mean()),
        "single": float(np.abs(many - few).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dev", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/homing-measures"))
    parser.add_argument("--background", type=Path)
    args = parser.parse_args()
    golden = read_sets(args.dev)
    golden.pop("passages_q-zh_d-zht", None)
    embedder = remembered(LocalProvider(), args.cache)
    sets = [read(name, golden, embedder) for name in golden]
    passages = [name for name in golden if name.startswith("passages")]
    recalled: dict[str, Mapping[str, float]] = {}
    grown: dict[str, Mapping[str, float]] = {}
    for name in passages:
        one = scaled(embedder, without(name, sets))
        recalled[label(name)] = memories(golden[name], elsewhere(name, golden), one)
        if args.background is not None:
            grown[label(name)] = growth(golden[name], args.background, one)
    mean = {key: float(np.mean([row[key] for row in recalled.values()])) for key in next(iter(recalled.values()))}
    recalled["** all"] = mean
    if not grown and RESULTS.exists():
        grown = json.loads(RESULTS.read_text(encoding="utf-8"))["growth"]
    for title, rows in (("memories", recalled), ("growth", grown)):
        show(title, [{"set": name} | {key: f"{value:.3f}" for key, value in row.items()} for name, row in rows.items()])
    write(RESULTS, {"machine": machine(), "model": LocalProvider().id, "memories": recalled, "growth": grown})


if __name__ == "__main__":
    main()
