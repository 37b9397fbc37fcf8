"""How well and how fast skills are found.

    python bench/skills.py quality FOLDER... [--work CACHE]   # recall@1/@5 and nDCG@10 on golden sets
    python bench/skills.py body FOLDER [--work CACHE]         # what searching the bodies is worth, on real skills
    python bench/skills.py threshold FOLDER... --others FOLDER... [--questions 300] [--work CACHE]
    python bench/skills.py speed [--sizes 1000 10000]         # a warm question, by the number of skills
    python bench/skills.py scan [--skills 1000] [--peers PYTHON --model FOLDER [--peer-texts 640]]

`quality` asks `find_relevant_skills` itself and, over the same records, the vector leg alone and BM25 alone (the same
tokens). A golden set is a folder with corpus.jsonl (id, name, text, tags), queries.jsonl and qrels.jsonl.

`body` takes the second half of each description away and asks for the skill with it, with and without the bodies.

`threshold` asks the questions of each golden set, and questions about other things (the queries.jsonl of `--others`),
and counts how many get an answer that scores at least 0.5.

`speed` fills the index with random vectors, five passages a skill, and asks questions that were never asked before, the
sizes taking turns; the question is embedded by the bundled model.

`scan` writes skills to a folder and scans it twice; the peer embeds some of the same texts, drawn at random,
with sentence-transformers and adds them to Chroma, in a process of its own. Both are timed after their imports and with
the model loaded.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from homing.embedders.cached import Cached
from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider, Kind
from homing.engine.engine import temporary_engine
from homing.evaluation.run import ndcg, recall
from homing.skills import Skill, SkillService
from homing.skills.index import HEADS, passages_of
from homing.skills.skill import head_text
from homing.skills.skill_file import parse_skill, skill_places
from homing.vectors import Matrix, Scale, normalise
from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "skills.json"
WORKER = Path(__file__).parent / "workers" / "chroma_skills_worker.py"
DEPTH = 10
SENTENCE = re.compile(r"(?<=[。.；;!！])\s*|\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    quality = kinds.add_parser("quality")
    quality.add_argument("folders", type=Path, nargs="+")
    quality.add_argument("--work", type=Path)
    body = kinds.add_parser("body")
    body.add_argument("folder", type=Path)
    body.add_argument("--work", type=Path)
    threshold = kinds.add_parser("threshold")
    threshold.add_argument("folders", type=Path, nargs="+")
    threshold.add_argument("--others", type=Path, nargs="+", required=True)
    threshold.add_argument("--questions", type=int, default=300)
    threshold.add_argument("--work", type=Path)
    speed = kinds.add_parser("speed")
    speed.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    speed.add_argument("--rounds", type=int, default=10)
    scan = kinds.add_parser("scan")
    scan.add_argument("--skills", type=int, default=1_000)
    scan.add_argument("--peers", type=Path)
    scan.add_argument("--model", type=Path)
    scan.add_argument("--peer-texts", type=int, default=640)
    asked = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    measures = {
        "quality": measure_quality,
        "body": measure_body,
        "threshold": measure_threshold,
        "speed": measure_speed,
        "scan": measure_scan,
    }
    rows = measures[asked.kind](asked)
    show(asked.kind, rows)
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    write(RESULTS, {**before, "machine": machine(), asked.kind: rows})


@contextmanager
def opened(embedder: EmbeddingProvider) -> Iterator[SkillService]:
    """Skills in a store of their own."""
    with tempfile.TemporaryDirectory() as place:
        engine = temporary_engine(embedder)
        yield SkillService(lambda: engine, place)
        engine.close()


# Quality


def measure_quality(asked: argparse.Namespace) -> list[dict[str, Any]]:
    work = asked.work or Path(tempfile.mkdtemp(prefix="homing-bench-"))
    embedder = Cached(LocalProvider(), work / "cache.db", by_kind=False)
    return [row for folder in asked.folders for row in _quality_of(folder, embedder)]


def _quality_of(folder: Path, embedder: EmbeddingProvider) -> Iterator[dict[str, Any]]:
    corpus, queries = _rows(folder / "corpus.jsonl"), _rows(folder / "queries.jsonl")
    relevant: dict[str, dict[str, float]] = {}
    for row in _rows(folder / "qrels.jsonl"):
        relevant.setdefault(row["qid"], {})[row["did"]] = row["score"]
    queries = [query for query in queries if query["id"] in relevant]
    skills = _golden_skills(corpus)
    names = [row["id"] for row in corpus]
    heads = embedder.embed([head_text(skill) for skill in skills])
    vectors = embedder.embed([query["text"] for query in queries], kind="query")
    found: dict[str, list[list[str]]] = {"BM25": [], "vector": [], "skills": []}
    with opened(embedder) as service:
        service.index_skills(skills)
        for query, vector in zip(queries, vectors, strict=True):
            worded = service.engine.store.search_words(HEADS, query["text"], DEPTH).found
            found["BM25"].append([names[int(one.id.removeprefix("/golden/"))] for one in worded])
            found["vector"].append([names[at] for at in _top(heads @ vector)])
            hits = service.find_relevant_skills(query["text"], limit=DEPTH)
            found["skills"].append([hit.metadata["document"] for hit in hits])
    for leg, rankings in found.items():
        judged = list(zip(rankings, (relevant[query["id"]] for query in queries), strict=True))
        yield {
            "set": folder.name,
            "by": leg,
            "questions": len(queries),
            "recall@1": round(statistics.fmean(recall(ranking, right, 1) for ranking, right in judged), 4),
            "recall@5": round(statistics.fmean(recall(ranking, right, 5) for ranking, right in judged), 4),
            "nDCG@10": round(statistics.fmean(ndcg(ranking, right) for ranking, right in judged), 4),
        }


def _golden_skills(corpus: Sequence[dict[str, Any]]) -> list[Skill]:
    return [
        Skill(row["name"], row["text"], tuple(row.get("tags", ())), f"/golden/{at}", metadata={"document": row["id"]})
        for at, row in enumerate(corpus)
    ]


def _top(scores: Any) -> list[int]:
    order: list[int] = np.argsort(-scores, kind="stable")[:DEPTH].tolist()
    return order


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


# The body


def measure_body(asked: argparse.Namespace) -> list[dict[str, Any]]:
    work = asked.work or Path(tempfile.mkdtemp(prefix="homing-bench-"))
    embedder = Cached(LocalProvider(), work / "cache.db", by_kind=False)
    skills: list[Skill] = []
    questions: list[tuple[str, str]] = []
    for place in skill_places(asked.folder):
        skill = parse_skill(place.file.read_bytes(), place.folder).skill
        sentences = [one for one in SENTENCE.split(skill.description) if len(one) > 8]
        half = (len(sentences) + 1) // 2
        if len(sentences) > 1:
            questions.append((" ".join(sentences[half:])[:300], skill.id))
            skill = replace(skill, description=" ".join(sentences[:half]))
        skills.append(skill)
    rows = []
    for what, shown in (("without bodies", [replace(one, body="") for one in skills]), ("with bodies", skills)):
        with opened(embedder) as service:
            service.index_skills(shown)
            found = [[hit.id for hit in service.find_relevant_skills(query, DEPTH)] for query, _ in questions]
        judged = list(zip(found, ({right: 1.0} for _, right in questions), strict=True))
        rows.append(
            {
                "what": what,
                "skills": len(skills),
                "questions": len(questions),
                "recall@1": round(statistics.fmean(recall(ranking, right, 1) for ranking, right in judged), 4),
                "recall@5": round(statistics.fmean(recall(ranking, right, 5) for ranking, right in judged), 4),
                "nDCG@10": round(statistics.fmean(ndcg(ranking, right) for ranking, right in judged), 4),
            }
        )
    return rows


# The threshold


def measure_threshold(asked: argparse.Namespace) -> list[dict[str, Any]]:
    work = asked.work or Path(tempfile.mkdtemp(prefix="homing-bench-"))
    embedder = Cached(LocalProvider(), work / "cache.db", by_kind=False)
    chance = random.Random(5)
    each = asked.questions // len(asked.others)
    others = [one["text"] for folder in asked.others for one in _some(_rows(folder / "queries.jsonl"), each, chance)]
    rows = []
    for folder in asked.folders:
        own = [one["text"] for one in _some(_rows(folder / "queries.jsonl"), asked.questions, chance)]
        with opened(embedder) as service:
            skills = _golden_skills(_rows(folder / "corpus.jsonl"))
            service.index_skills(skills)
            best = [[service.find_relevant_skills(query, 1)[0].score for query in asked] for asked in (own, others)]
        rows.append(
            {
                "set": folder.name,
                "skills": len(skills),
                "own questions answered at 0.5": _share(best[0]),
                "other questions answered at 0.5": _share(best[1]),
                "median score, own": round(statistics.median(best[0]), 2),
                "median score, other": round(statistics.median(best[1]), 2),
            }
        )
    return rows


def _some(rows: list[dict[str, Any]], count: int, chance: random.Random) -> list[dict[str, Any]]:
    return chance.sample(rows, min(count, len(rows)))


def _share(scores: Sequence[float]) -> float:
    return round(statistics.fmean(score >= 0.5 for score in scores), 3)


# Speed


class QuickDocuments:
    """Documents get random vectors, which cost nothing; questions are embedded by the bundled model."""

    def __init__(self) -> None:
        self._local = LocalProvider()
        self._random = np.random.default_rng(7)
        self.id, self.dimensions = self._local.id, self._local.dimensions

    @property
    def scale(self) -> Scale | None:
        return self._local.scale

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        if kind == "query":
            return self._local.embed(texts, kind=kind)
        return normalise(self._random.standard_normal((len(texts), self.dimensions)))

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        return self._local.truncated(texts)


def measure_speed(asked: argparse.Namespace) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        services = {}
        for size in asked.sizes:
            engine = temporary_engine(QuickDocuments())
            services[size] = SkillService(lambda engine=engine: engine, place)
            services[size].index_skills([parse_skill(text.encode(), Path(f"/s/{at}")).skill for at, text in made(size)])
        times: dict[int, list[float]] = {size: [] for size in asked.sizes}
        processor: dict[int, list[float]] = {size: [] for size in asked.sizes}
        chance = random.Random(3)
        for turn in range(asked.rounds + 1):
            for size, service in services.items():
                for number in range(10):
                    query = f"{chance.choice(VERBS)[0]}{chance.choice(THINGS)[0]}，第 {turn}-{number}-{size} 次"
                    wall, cpu = time.perf_counter(), time.process_time()
                    service.find_relevant_skills(query)
                    if turn:  # the first turn warms up
                        times[size].append((time.perf_counter() - wall) * 1000)
                        processor[size].append((time.process_time() - cpu) * 1000)
        for service in services.values():
            service.engine.close()
    return [
        {
            "skills": size,
            "p50 ms": round(statistics.median(times[size]), 2),
            "p95 ms": round(sorted(times[size])[int(len(times[size]) * 0.95)], 2),
            "p50 processor ms": round(statistics.median(processor[size]), 2),
            "ratio": round(statistics.median(processor[size]) / statistics.median(processor[asked.sizes[0]]), 2),
        }
        for size in asked.sizes
    ]


# Scanning


def measure_scan(asked: argparse.Namespace) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "skills")
        texts: list[str] = []
        for at, text in made(asked.skills):
            folder = root / f"skill-{at}"
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text(text, encoding="utf-8")
            skill = parse_skill(text.encode(), folder).skill
            texts += [head_text(skill), *passages_of(skill.body)]
        engine = temporary_engine(LocalProvider())
        service = SkillService(lambda: engine, place)
        service.initialize()
        rows = []
        for turn in ("first scan", "second scan"):
            wall, cpu = time.perf_counter(), time.process_time()
            counts = service.scan(root).counts
            rows.append(
                _timed(f"homing, {turn}", len(texts), time.perf_counter() - wall, time.process_time() - cpu)
                | {"indexed": counts["indexed"]}
            )
        engine.close()
        if asked.peers:
            listed = Path(place, "texts.json")
            taken = random.Random(13).sample(texts, min(asked.peer_texts, len(texts)))
            listed.write_text(json.dumps(taken), encoding="utf-8")
            done = subprocess.run(
                [asked.peers, WORKER, listed, asked.model, Path(place, "chroma")], capture_output=True, check=True
            )
            told = json.loads(done.stdout.splitlines()[-1])
            rows.append(
                _timed("sentence-transformers + Chroma", len(taken), told["seconds"], told["processor"])
                | {"indexed": 0}
            )
            peer = rows[-1]
            for row, tells in zip(rows, (True, False, True), strict=True):
                for unit in ("texts/s", "texts/processor s"):
                    # A scan that finds nothing to do embeds nothing: there is nothing to compare.
                    row[f"{unit} ÷ peer"] = round(row[unit] / peer[unit], 2) if tells else ""
    return rows


def _timed(what: str, texts: int, seconds: float, processor: float) -> dict[str, Any]:
    return {
        "what": what,
        "texts": texts,
        "seconds": round(seconds, 2),
        "processor s": round(processor, 2),
        "texts/s": round(texts / seconds, 1),
        "texts/processor s": round(texts / processor, 1),
    }


VERBS = [
    ("分析", "Analyse"), ("生成", "Generate"), ("转换", "Convert"), ("检查", "Check"), ("部署", "Deploy"),
    ("翻译", "Translate"), ("整理", "Tidy"), ("备份", "Save"), ("比较", "Compare"), ("监控", "Monitor"),
]  # fmt: skip
THINGS = [
    ("表格", "spreadsheets"), ("日志", "logs"), ("合同", "contracts"), ("图片", "images"), ("数据库", "databases"),
    ("邮件", "mail"), ("网页", "pages"), ("代码", "code"), ("视频", "videos"), ("发票", "invoices"),
]  # fmt: skip
PLACES = [
    "在本地文件夹中",
    "on a server",
    "for a small team",
    "每天早上",
    "when a release is due",
    "按项目",
    "in the cloud",
]


def made(count: int) -> Iterator[tuple[int, str]]:
    """SKILL.md files in two languages, no two alike, of about five passages."""
    chance = random.Random(11)
    for at in range(count):
        verb, thing, where = chance.choice(VERBS), chance.choice(THINGS), chance.choice(PLACES)
        described = (
            f"{verb[0]}{thing[0]}，{where}，编号{at}" if at % 2 else f"{verb[1]} {thing[1]} {where}, number {at}"
        )
        body = "\n\n".join(
            f"## {chance.choice(VERBS)[part % 2]} {chance.choice(THINGS)[part % 2]}\n\n"
            + " ".join(
                f"{chance.choice(VERBS)[1]} {chance.choice(THINGS)[1]} {chance.choice(PLACES)}; "
                f"{chance.choice(VERBS)[0]}{chance.choice(THINGS)[0]}之后再{chance.choice(VERBS)[0]}{at}。"
                for _ in range(8)
            )
            for part in range(5)
        )
        yield (
            at,
            f"---\nname: {verb[1].lower()}-{thing[1]}-{at}\ndescription: {described}\n---\n{body}\n",
        )


if __name__ == "__main__":
    main()
