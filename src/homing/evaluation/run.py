"""Runs a golden set through search, once, and scores any number of configurations on what the legs returned."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from homing.embedders.provider import EmbeddingProvider
from homing.evaluation.golden import GoldenSet, Question
from homing.evaluation.metrics import ndcg, recall, reciprocal_rank
from homing.fusion import DEFAULT_K, Ranking, rrf
from homing.records import VectorRecord
from homing.search import HybridOptions, search
from homing.stores.store import SearchOptions, Store
from homing.vectors import score_of

COLLECTION = "evaluation"
DEPTH = 100
BATCH = 512
TIMED = 50

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Configuration:
    """How the two legs are combined; a weight of 0 leaves a leg out. `min_score` is the threshold for abstaining."""

    vector_weight: float = 0.7
    keyword_weight: float = 0.3
    rrf_k: int = DEFAULT_K
    min_score: float | None = None

    @property
    def name(self) -> str:
        """What a table calls it."""
        if not self.keyword_weight:
            return "vector"
        if not self.vector_weight:
            return "keyword"
        return f"hybrid {self.vector_weight:g}/{self.keyword_weight:g} k={self.rrf_k}"


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over the questions of one set, configuration and language; `abstained` is over those without an answer."""

    set: str
    configuration: str
    language: str
    questions: int
    recall_1: float
    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr: float
    abstained: float | None


@dataclass(frozen=True, slots=True)
class Legs:
    """What the two legs returned for a question, as deep as any configuration looks."""

    question: Question
    vector: tuple[str, ...]
    scores: tuple[float, ...]
    keyword: tuple[str, ...]


def index(golden: GoldenSet, store: Store, embedder: EmbeddingProvider, progress: Progress | None = None) -> None:
    """Put the corpus of a golden set into a store."""
    ids = list(golden.corpus)
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        rows = embedder.embed([golden.corpus[one] for one in part])
        store.upsert(
            VectorRecord(one, COLLECTION, row, {}, golden.corpus[one], embedder.id)
            for one, row in zip(part, rows, strict=True)
        )
        if progress is not None:
            progress(start + len(part), len(ids))


def ask(golden: GoldenSet, store: Store, embedder: EmbeddingProvider, progress: Progress | None = None) -> list[Legs]:
    """Put every question to both legs."""
    answers = []
    vectors = embedder.embed([question.text for question in golden.questions], kind="query")
    for number, (question, vector) in enumerate(zip(golden.questions, vectors, strict=True), start=1):
        near = store.search(COLLECTION, vector, DEPTH, SearchOptions(model=embedder.id))
        found = store.search_text(COLLECTION, question.text, DEPTH)
        scores = tuple(score_of(match.cosine or 0.0, embedder.scale) for match in near)
        answers.append(Legs(question, tuple(match.id for match in near), scores, tuple(match.id for match in found)))
        if progress is not None:
            progress(number, len(golden.questions))
    return answers


def ranking(legs: Legs, configuration: Configuration) -> list[str]:
    """The ids a configuration returns for a question, best first."""
    floor = configuration.min_score
    near = [one for one, score in zip(legs.vector, legs.scores, strict=True) if floor is None or score >= floor]
    rankings = []
    if configuration.vector_weight:
        rankings.append(Ranking("vector", near, configuration.vector_weight))
    if configuration.keyword_weight:
        rankings.append(Ranking("keyword", legs.keyword, configuration.keyword_weight))
    return [fused.id for fused in rrf(rankings, k=configuration.rrf_k)]


def score(name: str, answers: Sequence[Legs], configurations: Iterable[Configuration]) -> list[Scores]:
    """The figures of every configuration, over all questions and per language where there are several."""
    languages = sorted({legs.question.language for legs in answers})
    rows = []
    for configuration in configurations:
        for language in ["all", *(languages if len(languages) > 1 else [])]:
            chosen = [legs for legs in answers if language in ("all", legs.question.language)]
            rows.append(_means(name, configuration, language, chosen))
    return rows


def latency(golden: GoldenSet, store: Store, embedder: EmbeddingProvider) -> dict[str, float]:
    """Milliseconds of a whole search, embedding included, over some of the questions: p50 and p95."""
    times = []
    for question in golden.questions[:TIMED]:
        started = time.perf_counter()
        search(question.text, COLLECTION, store=store, embedder=embedder, options=HybridOptions(limit=10))
        times.append((time.perf_counter() - started) * 1000)
    times.sort()
    return {"p50_ms": statistics.median(times), "p95_ms": times[int(len(times) * 0.95)]} if times else {}


def sweep(step: float = 0.1) -> list[Configuration]:
    """Weights from all vector to all keyword."""
    parts = round(1 / step)
    return [Configuration(round(1 - n * step, 3), round(n * step, 3)) for n in range(parts + 1)]


def _means(name: str, configuration: Configuration, language: str, chosen: Sequence[Legs]) -> Scores:
    answered = [(ranking(legs, configuration), legs.question.relevant) for legs in chosen if legs.question.relevant]
    silent = [ranking(legs, configuration) for legs in chosen if not legs.question.relevant]

    def mean(values: list[float]) -> float:
        return statistics.fmean(values) if values else 0.0

    return Scores(
        set=name,
        configuration=configuration.name,
        language=language,
        questions=len(chosen),
        recall_1=mean([recall(found, relevant, 1) for found, relevant in answered]),
        recall_5=mean([recall(found, relevant, 5) for found, relevant in answered]),
        recall_10=mean([recall(found, relevant, 10) for found, relevant in answered]),
        ndcg_10=mean([ndcg(found, relevant) for found, relevant in answered]),
        mrr=mean([reciprocal_rank(found, relevant) for found, relevant in answered]),
        abstained=mean([float(not found) for found in silent]) if silent else None,
    )
