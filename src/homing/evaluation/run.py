"""Puts the questions of a golden set to the search that people use, and scores what it answered."""

from __future__ import annotations

import math
import pickle
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from homing.embedders.provider import EmbeddingProvider, Kind, Wrapper
from homing.engine.batch import embed_long
from homing.engine.engine import Engine
from homing.engine.ranking import DEFAULT_K
from homing.engine.search import HybridOptions, search
from homing.errors import InvalidArgument
from homing.evaluation.golden import GoldenSet, Question
from homing.evaluation.result import Language, Latency, Mode, Reliability, Row, Threshold
from homing.records import Leg, Retrieved, VectorRecord
from homing.stores.store import Store
from homing.vectors import Matrix

READS = frozenset({"search_vector", "search_words", "measure", "get"})
COLLECTION = "evaluation"
BATCH = 512
TIMED = 50
SHOWN = 10
"""Hits of an answer: as many as a search gives by default, and as somebody would look at."""
DEADLINE = 60.0
"""Seconds that a search may take: a busy machine changes no figure."""
THRESHOLD = 0.5
"""The score at which every model's own border between unrelated and related lies."""
EVIDENCE = "hybrid evidence"
MODES: tuple[Mode, ...] = ("semantic", "keyword", "hybrid")
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Configuration:
    """Which legs answer, and how they become one order; a weight of 0 leaves a leg out.

    Between two legs, weights and `rrf_k` are those of `fusion="rrf"`; `fusion="evidence"`, which searches use unless
    the settings say otherwise, takes no weights. `min_score` leaves out semantic matches that score less, as a search
    does.
    """

    vector_weight: float = 0.7
    keyword_weight: float = 0.3
    rrf_k: int = DEFAULT_K
    min_score: float | None = None
    fusion: Literal["evidence", "rrf"] = "rrf"

    def __post_init__(self) -> None:
        if self.vector_weight < 0 or self.keyword_weight < 0 or not (self.vector_weight or self.keyword_weight):
            raise InvalidArgument("weights are not negative, and one of them is more than 0")
        if self.rrf_k < 0:
            raise InvalidArgument(f"the k of a fusion is not negative; got {self.rrf_k}")

    @property
    def mode(self) -> Mode:
        """Which legs have a say."""
        if not self.keyword_weight:
            return "semantic"
        return "hybrid" if self.vector_weight else "keyword"

    @property
    def name(self) -> str:
        """What a table calls it."""
        if self.mode != "hybrid":
            return "keyword" if self.mode == "keyword" else "vector"
        if self.fusion == "evidence":
            return EVIDENCE
        return f"hybrid {self.vector_weight:g}/{self.keyword_weight:g} k={self.rrf_k}"


def sweep(step: float = 0.1, *, rrf_k: int = DEFAULT_K, min_score: float | None = None) -> list[Configuration]:
    """Weights from all vector to all keyword."""
    parts = round(1 / step)
    return [Configuration(round(1 - n * step, 3), round(n * step, 3), rrf_k, min_score) for n in range(parts + 1)]


NEAREST = Configuration(1, 0)
"""What tells how near the nearest document is; always asked."""


class _ReadOnce:
    """A store that gives again what it has answered to the same question. Nothing may be written meanwhile.

    Configurations that are compared differ in how they combine the legs: the legs themselves are asked once.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._answers: dict[bytes, Any] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def answer(*positional: Any, **named: Any) -> Any:
            key = pickle.dumps((name, positional, named))
            if key not in self._answers:
                self._answers[key] = method(*positional, **named)
            return self._answers[key]

        return answer if name in READS else method


def recall(ranking: Sequence[str], relevant: Mapping[str, float], k: int) -> float:
    """The share of questions answered: 1 where at least one relevant document is among the first `k`."""
    return float(any(relevant.get(one, 0) > 0 for one in ranking[:k]))


def ndcg(ranking: Sequence[str], relevant: Mapping[str, float], k: int = 10) -> float:
    """Gain of the first `k`, discounted by the logarithm of the place, over the best possible."""
    gained = sum(relevant.get(one, 0.0) / math.log2(place + 2) for place, one in enumerate(ranking[:k]))
    best = sum(gain / math.log2(place + 2) for place, gain in enumerate(sorted(relevant.values(), reverse=True)[:k]))
    return gained / best if best else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, float]) -> float:
    """One over the place of the first relevant document; 0 where there is none."""
    return next((1 / place for place, one in enumerate(ranking, start=1) if relevant.get(one, 0) > 0), 0.0)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a question was answered, by configuration."""

    question: Question
    found: Mapping[Configuration, Retrieved]

    @property
    def best_score(self) -> float:
        """The score of the nearest document; 0 where there is none."""
        return max((hit.score or 0.0 for hit in self.found[NEAREST]), default=0.0)


def index(golden: GoldenSet, engine: Engine, progress: Progress | None = None) -> None:
    """Put the corpus of a golden set into a collection, with its vectors. Raises what the model raises."""
    embedder = engine.models.provider()
    collection = engine.collection(COLLECTION)
    ids = list(golden.corpus)
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        rows = embed_long(embedder, [golden.corpus[one] for one in part])
        collection.write(
            VectorRecord(one, COLLECTION, row, {}, golden.corpus[one], embedder.id)
            for one, row in zip(part, rows, strict=True)
        )
        if progress is not None:
            progress(start + len(part), len(ids))


def ask(
    golden: GoldenSet, engine: Engine, configurations: Iterable[Configuration], progress: Progress | None = None
) -> list[Answers]:
    """Put every question to the search, in every configuration. Raises what a leg raises."""
    answers: list[Answers] = []
    if not golden.questions:
        return answers
    asked = list(dict.fromkeys((NEAREST, *configurations)))
    embedder = _Prepared(engine.models.provider(), [question.text for question in golden.questions])
    for number, question in enumerate(golden.questions, start=1):
        store = cast(Store, _ReadOnce(engine.store))
        answers.append(Answers(question, {one: _search(question.text, store, embedder, one) for one in asked}))
        if progress is not None:
            progress(number, len(golden.questions))
    return answers


def _search(text: str, store: Store, embedder: EmbeddingProvider, configuration: Configuration) -> Retrieved:
    options = HybridOptions(limit=SHOWN, mode=configuration.mode, deadline=DEADLINE, **asdict(configuration))
    return search(text, COLLECTION, store=store, embedder=embedder, options=options, on_failure=_refuse)


def _refuse(leg: Leg, error: Exception) -> None:
    """Half a search is not measured."""
    raise error


class _Prepared(Wrapper):
    """A provider that has embedded these questions already, together."""

    def __init__(self, provider: EmbeddingProvider, questions: Sequence[str]) -> None:
        super().__init__(provider)
        self._rows = dict(zip(questions, provider.embed(questions, kind="query"), strict=True))

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """The rows of these questions; of anything else, what the provider gives."""
        if kind == "query" and all(text in self._rows for text in texts):
            return np.stack([self._rows[text] for text in texts])
        return self._provider.embed(texts, kind=kind)


def score(
    name: str,
    answers: Sequence[Answers],
    configurations: Iterable[Configuration],
    *,
    model: str = "",
    threshold: float = THRESHOLD,
) -> list[Row]:
    """The figures of every configuration, over all questions and per language where there are several."""
    spoken: list[Language] = sorted({one.question.language for one in answers})
    languages: list[Language] = ["all", *(spoken if len(spoken) > 1 else [])]
    return [
        _means(
            name,
            model,
            configuration,
            language,
            [one for one in answers if language in ("all", one.question.language)],
            threshold,
        )
        for configuration in configurations
        for language in languages
    ]


def thresholds(name: str, model: str, answers: Sequence[Answers], step: float = 0.05) -> list[Threshold]:
    """What every threshold on the score would do; nothing for a set without unanswerable questions."""
    silent = [one.best_score for one in answers if not one.question.relevant]
    spoken = [one.best_score for one in answers if one.question.relevant]
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


def reliability(name: str, model: str, answers: Sequence[Answers], bins: int = 10) -> list[Reliability]:
    """How confidence and scores of searches by evidence agree with what was right; nothing where none were asked."""
    said: dict[Literal["confidence", "score"], list[tuple[float, bool]]] = {"confidence": [], "score": []}
    for one in answers:
        found = next((found for how, found in one.found.items() if how.name == EVIDENCE), None)
        if found is None or found.confidence is None or not found.hits:
            continue
        right = [one.question.relevant.get(hit.id, 0) > 0 for hit in found]
        said["confidence"].append((found.confidence, right[0]))
        said["score"] += [(hit.score, good) for hit, good in zip(found, right, strict=True) if hit.score is not None]
    dots = []
    for kind, pairs in said.items():
        for at in range(bins):
            here = [(chance, good) for chance, good in pairs if min(int(chance * bins), bins - 1) == at]
            if here:
                mean, was = _mean([chance for chance, _ in here]), _mean([float(good) for _, good in here])
                dots.append(Reliability(set=name, model=model, kind=kind, said=mean, was=was, count=len(here)))
    return dots


def latency(golden: GoldenSet, engine: Engine, mode: Mode = "hybrid") -> Latency | None:
    """Milliseconds of a whole search, embedding included, over some of the questions; None where there are none."""
    times = []
    options = HybridOptions(limit=SHOWN, mode=mode)
    embedder = engine.models.provider()
    asked = golden.questions[:TIMED]
    # The first one warms up what is loaded once, and is not counted.
    for question in (*asked[:1], *asked):
        # A number that no question had before: the vector of a known text would come from the cache.
        text = f"{question.text} {time.time_ns() % 1_000_000_007}"
        started = time.perf_counter()
        search(text, COLLECTION, store=engine.store, embedder=embedder, options=options)
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
    chosen: Sequence[Answers],
    threshold: float,
) -> Row:
    answered = [([hit.id for hit in one.found[configuration]], one.question.relevant) for one in chosen]
    answered = [(found, relevant) for found, relevant in answered if relevant]
    # Words alone have no score that means something across questions: there any hit says something.
    words = configuration.mode == "keyword"
    kept: list[float] = []
    abstained: list[float] = []
    for one in chosen:
        spoke = any(words or (hit.score or 0.0) >= threshold for hit in one.found[configuration])
        (kept if one.question.relevant else abstained).append(float(spoke is bool(one.question.relevant)))
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
