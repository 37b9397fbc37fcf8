"""Runs a golden set through search, once, and scores any number of configurations on what the legs returned."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from homing.embedders.provider import EmbeddingProvider
from homing.engine.fusion import Ranking, rrf
from homing.engine.search import HybridOptions, search
from homing.evaluation.configuration import Configuration
from homing.evaluation.golden import GoldenSet, Question
from homing.evaluation.metrics import ndcg, recall, reciprocal_rank
from homing.evaluation.result import Language, Latency, Mode, Row, Threshold
from homing.records import VectorRecord
from homing.stores.store import SearchOptions, Store
from homing.vectors import score_of

COLLECTION = "evaluation"
DEPTH = 100
BATCH = 512
TIMED = 50
SHOWN = 10
"""Hits of an answer that count as what somebody would look at."""
THRESHOLD = 0.5
"""The score at which every model's own border between unrelated and related lies."""
MODES: tuple[Mode, ...] = ("semantic", "keyword", "hybrid")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Legs:
    """What the two legs returned for a question, as deep as any configuration looks."""

    question: Question
    vector: tuple[str, ...]
    scores: tuple[float, ...]
    keyword: tuple[str, ...]

    @property
    def best_score(self) -> float:
        """The score of the nearest document; 0 where there is none."""
        return max(self.scores, default=0.0)


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
    answers: list[Legs] = []
    if not golden.questions:
        return answers
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


def answers_something(legs: Legs, found: Sequence[str], configuration: Configuration, threshold: float) -> bool:
    """Whether an answer has anything to say: a hit that somebody would see scores enough.

    Words alone have no score that means something across questions, so there any hit counts.
    """
    if not configuration.vector_weight:
        return bool(found)
    scores = dict(zip(legs.vector, legs.scores, strict=True))
    return any(scores.get(one, 0.0) >= threshold for one in found[:SHOWN])


def score(
    name: str,
    answers: Sequence[Legs],
    configurations: Iterable[Configuration],
    *,
    model: str = "",
    threshold: float = THRESHOLD,
) -> list[Row]:
    """The figures of every configuration, over all questions and per language where there are several."""
    spoken: list[Language] = sorted({legs.question.language for legs in answers})
    languages: list[Language] = ["all", *(spoken if len(spoken) > 1 else [])]
    rows = []
    for configuration in configurations:
        rankings = [(legs, ranking(legs, configuration)) for legs in answers]
        for language in languages:
            chosen = [pair for pair in rankings if language in ("all", pair[0].question.language)]
            rows.append(_means(name, model, configuration, language, chosen, threshold))
    return rows


def thresholds(name: str, model: str, answers: Sequence[Legs], step: float = 0.05) -> list[Threshold]:
    """What every threshold on the score would do; nothing for a set without unanswerable questions."""
    silent = [legs.best_score for legs in answers if not legs.question.relevant]
    spoken = [legs.best_score for legs in answers if legs.question.relevant]
    if not silent or not spoken:
        return []
    return [
        Threshold(
            set=name,
            model=model,
            threshold=at,
            abstained=_mean([float(one < at) for one in silent]),
            kept=_mean([float(one >= at) for one in spoken]),
        )
        for at in (round(n * step, 3) for n in range(round(1 / step) + 1))
    ]


def latency(golden: GoldenSet, store: Store, embedder: EmbeddingProvider, mode: Mode = "hybrid") -> Latency | None:
    """Milliseconds of a whole search, embedding included, over some of the questions; None where there are none."""
    times = []
    asked = golden.questions[:TIMED]
    # The first one warms up what is loaded once, and is not counted.
    for question in (*asked[:1], *asked):
        # A number that no question had before: the vector of a known text would come from the cache.
        text = f"{question.text} {time.time_ns() % 1_000_000_007}"
        started = time.perf_counter()
        search(text, COLLECTION, store=store, embedder=embedder, options=HybridOptions(limit=SHOWN, mode=mode))
        times.append((time.perf_counter() - started) * 1000)
    if not times:
        return None
    times = sorted(times[1:])
    return Latency(
        set=golden.name,
        model=embedder.id,
        mode=mode,
        questions=len(times),
        p50_ms=statistics.median(times),
        p95_ms=times[int(len(times) * 0.95)],
    )


def _means(
    name: str,
    model: str,
    configuration: Configuration,
    language: Language,
    chosen: Sequence[tuple[Legs, list[str]]],
    threshold: float,
) -> Row:
    answered = [(found, legs.question.relevant) for legs, found in chosen if legs.question.relevant]
    kept = [
        float(answers_something(legs, found, configuration, threshold))
        for legs, found in chosen
        if legs.question.relevant
    ]
    abstained = [
        float(not answers_something(legs, found, configuration, threshold))
        for legs, found in chosen
        if not legs.question.relevant
    ]
    return Row(
        set=name,
        model=model,
        configuration=configuration.name,
        mode=configuration.mode,
        vector_weight=configuration.vector_weight,
        keyword_weight=configuration.keyword_weight,
        rrf_k=configuration.rrf_k,
        min_score=configuration.min_score,
        language=language,
        questions=len(chosen),
        recall_1=_mean([recall(found, relevant, 1) for found, relevant in answered]),
        recall_5=_mean([recall(found, relevant, 5) for found, relevant in answered]),
        recall_10=_mean([recall(found, relevant, 10) for found, relevant in answered]),
        ndcg_10=_mean([ndcg(found, relevant) for found, relevant in answered]),
        mrr=_mean([reciprocal_rank(found, relevant) for found, relevant in answered]),
        abstained=_mean(abstained) if abstained else None,
        kept=_mean(kept) if kept else None,
    )


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0
