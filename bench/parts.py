"""How the parts of a thing become one place in the order: of documents that are cut into chunks, and of skills.

    python bench/parts.py DEV_FOLDER documents [--sets SET...] [--sizes 0 128] [--titles nowhere "before each" apart]
    python bench/parts.py DEV_FOLDER skills [--every 1] [--cache FOLDER]

A document is all passages under one title; it is right where it holds the passage that answers. Its chunks have at most
so many tokens, and its title stands nowhere, before each chunk, or is a chunk of its own. A skill is its head, with the
first half of its description, and the passages of its body; it is asked for with the other half. Every way to join,
with every way to cut, is put into `results/parts.json` with its recall@1 on every set; `half` is how the best on one
half of the questions does on the other half, beside what the product does. Vectors are remembered in a folder that
`--cache` names, and `--name` is what the results are kept under. `--every 3` takes a third of the skills.
"""

from __future__ import annotations

import argparse
import json
import re
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider
from homing.engine.ranking import LIFT
from homing.models.fitting import Measures, measured_texts
from homing.skills.index import passages_of
from homing.skills.skill import Skill, head_text
from homing.skills.skill_file import parse_skill, skill_places
from homing.text.paragraphs import paragraphs
from measures import SETS, family, label, remembered
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "parts.json"
SIZES = (0, 128)
"""Tokens that a chunk has at most; 0 leaves passages whole."""
TITLES = ("nowhere", "before each", "apart")
MARGINS = (0.0, 0.05, 0.1)
SENTENCE = re.compile(r"(?<=[。.；;!！])\s*|\n")


@dataclass(frozen=True)
class Parts:
    """Cosine and evidence of every question (rows) and part (columns), and whose part each is, by number."""

    cosine: np.ndarray
    evidence: np.ndarray
    owners: np.ndarray

    @classmethod
    def of(cls, measures: Measures, owners: Sequence[int]) -> Parts:
        worth = np.sqrt(np.maximum(measures.mass, 1e-9) * max(measures.rarest, 1e-9))[:, None]
        return cls(measures.cosine, LIFT * measures.bm25 / worth, np.array(owners))

    def beside(self, others: Parts, margin: float) -> Parts:
        """With parts that must be nearer by a margin to count as much."""
        return Parts(
            np.hstack([self.cosine, others.cosine - margin]),
            np.hstack([self.evidence, others.evidence]),
            np.concatenate([self.owners, others.owners]),
        )

    def ordered(self, values: np.ndarray, missing: float) -> np.ndarray:
        """Values by question, thing and place among the parts of the thing, the highest first."""
        things, most = int(self.owners.max()) + 1, int(np.bincount(self.owners).max())
        found = np.full((len(values), things, most), missing)
        for thing in range(things):
            mine = np.flatnonzero(self.owners == thing)
            found[:, thing, : len(mine)] = -np.sort(-values[:, mine], axis=1)
        return found

    def joined(self) -> dict[str, np.ndarray]:
        """What orders the things, by how their parts are joined."""
        cosine, evidence = self.ordered(self.cosine, -1.0), self.ordered(self.evidence, 0.0)
        near = self.ordered(1 - (1 - self.cosine) * np.exp(-self.evidence), -1.0)
        there = near > -1

        def decayed(values: np.ndarray, decay: float) -> np.ndarray:
            return (np.where(there, values, 0.0) * decay ** np.arange(values.shape[2])).sum(axis=2)

        def fused(words: np.ndarray) -> np.ndarray:
            return 1 - (1 - cosine[:, :, 0]) * np.exp(-words)

        second = near[:, :, 1] if near.shape[2] > 1 else near[:, :, 0]
        second = np.where(second > -1, second, near[:, :, 0])
        return {
            CHOSEN: fused(evidence[:, :, 0]),
            "best part": near[:, :, 0],
            "mean of the two best": (near[:, :, 0] + second) / 2,
            "best, a quarter of the second": 0.8 * near[:, :, 0] + 0.2 * second,
            "mean of all": decayed(near, 1.0) / there.sum(axis=2),
            "sum, each half of the one before": decayed(near, 0.5),
            "sum, each a fifth of the one before": decayed(near, 0.2),
            "nearest, words summed, each half": fused(decayed(evidence, 0.5)),
            "nearest, words summed, each a fifth": fused(decayed(evidence, 0.2)),
        }


CHOSEN = "nearest part, and the part with most words"
"""What the product does."""


def right(order: np.ndarray, answers: Sequence[set[int]]) -> np.ndarray:
    """Of each question, whether the first thing is a right one."""
    return np.array(
        [first in right for first, right in zip(order.argmax(axis=1).tolist(), answers, strict=True)], float
    )


def documents(
    folders: Sequence[Path], embedder: EmbeddingProvider, sizes: Sequence[int], titles: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """By candidate and set, of each question whether the right document came first."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for folder in folders:
        corpus = _lines(folder / "corpus.jsonl")
        numbers = {title: at for at, title in enumerate(dict.fromkeys(row["title"] for row in corpus))}
        owner = {row["id"]: numbers[row["title"]] for row in corpus} | numbers
        questions = _asked(folder, owner)
        for size, title in product(sizes, titles):
            texts = _chunks(corpus, size, title)
            with measured_texts(texts, embedder) as measured:
                asked = measured.measure([text for text, _ in questions])
            parts = Parts.of(asked, [owner[key.rpartition("/")[0]] for key in texts])
            for join, order in parts.joined().items():
                name = f"{join} | {size or 'all'} tokens | title {title}"
                found.setdefault(name, {})[label(folder.name)] = right(order, [one for _, one in questions])
    return found


def _asked(folder: Path, owner: Mapping[str, int]) -> list[tuple[str, set[int]]]:
    answers: dict[str, set[int]] = {}
    for row in _lines(folder / "qrels.jsonl"):
        if row["did"] in owner:
            answers.setdefault(row["qid"], set()).add(owner[row["did"]])
    rows = _lines(folder / "queries.jsonl")
    return [(row["text"], answers[row["id"]]) for row in rows if row["id"] in answers]


def _chunks(corpus: Sequence[Mapping[str, str]], size: int, title: str) -> dict[str, str]:
    found = {}
    for row in corpus:
        cut = [one.text for one in paragraphs(row["text"], max_tokens=size)] if size else [row["text"]]
        for at, text in enumerate(cut):
            found[f"{row['id']}/{at}"] = f"{row['title']}: {text}" if title == "before each" else text
    if title == "apart":
        found |= {f"{row['title']}/title": row["title"] for row in corpus}
    return found


def skills(dev: Path, embedder: EmbeddingProvider, every: int) -> dict[str, dict[str, np.ndarray]]:
    """The same of skills: by candidate, of each question whether the right skill came first."""
    known: list[Skill] = []
    questions: list[tuple[str, set[int]]] = []
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(dev / "skills.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        for place in list(skill_places(Path(folder)))[::every]:
            skill = parse_skill(place.file.read_bytes(), place.folder).skill
            sentences = [one for one in SENTENCE.split(skill.description) if len(one) > 8]
            half = (len(sentences) + 1) // 2
            if len(sentences) > 1:
                questions.append((" ".join(sentences[half:])[:300], {len(known)}))
                skill = replace(skill, description=" ".join(sentences[:half]))
            known.append(skill)
    texts = [text for text, _ in questions]
    with measured_texts({str(at): head_text(one) for at, one in enumerate(known)}, embedder) as measured:
        heads = Parts.of(measured.measure(texts), range(len(known)))
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in ("nowhere", "before each"):
        passages = {
            f"{at}/{number}": f"{one.name}: {text}" if name == "before each" else text
            for at, one in enumerate(known)
            for number, text in enumerate(passages_of(one.body))
        }
        with measured_texts(passages, embedder) as measured:
            bodies = Parts.of(measured.measure(texts), [int(one.split("/")[0]) for one in passages])
        for margin in MARGINS:
            for join, order in heads.beside(bodies, margin).joined().items():
                told = f"{join} | margin {margin:g} | name {name}"
                found[told] = {"skills": right(order, [it for _, it in questions])}
    found["head alone"] = {"skills": right(heads.joined()[CHOSEN], [it for _, it in questions])}
    return found


def judged(found: Mapping[str, Mapping[str, np.ndarray]], chosen: str) -> dict[str, object]:
    """Recall@1 of every candidate, the best in the mean first, and what choosing among them is worth."""

    def mean(name: str, half: slice) -> float:
        return float(np.mean([one[half].mean() for one in found[name].values()]))

    every, even, odd = slice(None), slice(0, None, 2), slice(1, None, 2)
    rows = [
        {"candidate": name, "mean": round(mean(name, every), 4)}
        | {one: round(float(is_right.mean()), 4) for one, is_right in by_set.items()}
        for name, by_set in sorted(found.items(), key=lambda one: -mean(one[0], every))
    ]
    show("recall@1", [*rows[:12], *(row for row in rows if row["candidate"] == chosen)])
    best = max(found, key=lambda name: mean(name, even))
    half = {"best": best, "other half": round(mean(best, odd), 4), "the product's": round(mean(chosen, odd), 4)}
    print(half)
    return {"product": chosen, "half": half, "candidates": rows}


def _lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dev", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/homing-measures"))
    parser.add_argument("what", choices=("documents", "skills"))
    parser.add_argument("--sets", nargs="+", default=[one for one in SETS if family(one) == "passages"])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--titles", nargs="+", choices=TITLES, default=TITLES)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--name", help="what the results are kept under")
    args = parser.parse_args()
    embedder = remembered(LocalProvider(), args.cache)
    if args.what == "documents":
        chosen = f"{CHOSEN} | {args.sizes[0] or 'all'} tokens | title {args.titles[0]}"
        folders = [args.dev / one for one in args.sets]
        found = judged(documents(folders, embedder, args.sizes, args.titles), chosen)
    else:
        found = judged(skills(args.dev, embedder, args.every), f"{CHOSEN} | margin 0.05 | name nowhere")
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    write(RESULTS, {**before, "machine": machine(), "model": LocalProvider().id, args.name or args.what: found})


if __name__ == "__main__":
    main()
