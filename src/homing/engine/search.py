"""One search for every capability: a vector leg and a keyword leg side by side, fused, explained.

When one leg fails or is too slow, the other answers and the answer says so; only when both fail is there an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from homing.embedders.provider import EmbeddingProvider
from homing.engine.ranking import DEFAULT_K, FIELD, MIN_SCORE, Ranked, Ranking, confidence, is_silent, rank, rrf, score
from homing.engine.source import ModelsInUse, Nearest, Source, StoreSource, as_models, measured
from homing.errors import InvalidArgument, RetrievalFailed
from homing.legs import Outcome, run_leg, run_legs
from homing.records import Hit, Leg, LegShare, Mode, Notice, Retrieved, VectorRecord
from homing.stores.store import MAX_LIMIT, Measured, Store, Words
from homing.text.tokens import matched_terms
from homing.vectors import Scale, score_of

log = logging.getLogger(__name__)

NOTICES: Mapping[Leg, Notice] = {
    "vector": Notice(
        "语义搜索暂时不可用，已切换为关键词搜索", "Semantic search is unavailable for now; these are keyword results"
    ),
    "keyword": Notice(
        "关键词搜索暂时不可用，已切换为语义搜索", "Keyword search is unavailable for now; these are semantic results"
    ),
}
WARNINGS: Mapping[Leg, str] = {
    "vector": "向量检索失败，使用关键词检索降级",
    "keyword": "关键词检索失败，使用向量检索降级",
}
OnFailure = Callable[[Leg, Exception], None]
"""Called for each leg that failed while the other answered."""
Outcomes = Mapping[Leg, Outcome[Any]]


@dataclass(frozen=True, slots=True)
class HybridOptions:
    """How to search.

    `min_score` is a threshold on the readable score and concerns the vector leg only; None is no threshold, 0 is one.
    `deadline` is how long, in seconds, an answer waits for others; a leg that is computed here ends by itself. `depth`
    is how many matches each leg brings to the fusion; by default more than `limit`, because a record 12th in both lists
    beats one that is first in a single list.

    `fusion="evidence"` measures what only one leg found by the other, too, and ranks by both measures (`ranking`);
    `fusion="rrf"` ranks by the places in the lists of the legs that answered, weighed, and knows nothing else.

    `explains` is whether hits say which words of the query they hold; who shows only some of them can do that later.
    """

    limit: int = 10
    mode: Mode = "hybrid"
    min_score: float | None = None
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    fusion: Literal["evidence", "rrf"] = "evidence"
    vector_weight: float = 0.7
    keyword_weight: float = 0.3
    rrf_k: int = DEFAULT_K
    deadline: float = 5.0
    depth: int | None = None
    explains: bool = True

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise InvalidArgument(f"limit must not be negative; got {self.limit}")
        if self.vector_weight < 0 or self.keyword_weight < 0:
            raise InvalidArgument("a weight must not be negative; 0 takes a leg's say away")
        if not self.deadline > 0:
            raise InvalidArgument(f"deadline is in seconds and must be positive; got {self.deadline}")

    @property
    def leg_limit(self) -> int:
        """How many matches one leg is asked for; a store gives no more than MAX_LIMIT."""
        wanted = max(2 * self.limit + 10, FIELD) if self.depth is None else self.depth
        return max(self.limit, min(wanted, MAX_LIMIT))


def log_failure(leg: Leg, error: Exception) -> None:
    """Say that the other leg answers alone."""
    log.warning("%s: %s", WARNINGS[leg], error)


def search(
    query: str,
    collection: str,
    *,
    store: Store,
    embedder: EmbeddingProvider | ModelsInUse | None,
    options: HybridOptions | None = None,
    on_failure: OnFailure = log_failure,
) -> Retrieved:
    """The records of a collection that a query is about, best first, each with its explanation.

    A blank query has no hits. Without an embedder the keyword leg answers alone, which is a degraded answer only where
    semantic results were asked for. What waits for its vector is found by its words. Raises RetrievalFailed when no leg
    could answer. Who asks several collections at once may say by `on_failure` that one warning is enough.
    """
    options = options or HybridOptions()
    if not query.strip() or options.limit == 0:
        return Retrieved((), options.mode)
    source = StoreSource(query, collection, store, as_models(embedder), options.metadata_filter)
    started = time.perf_counter()
    outcomes = ask(source, options)
    check_answered(outcomes)
    return concluded(fused(source, options, outcomes), outcomes, started, on_failure)


def ask(source: Source, options: HybridOptions) -> dict[Leg, Outcome[Nearest | Words]]:
    """The outcome of each leg that the question needs."""
    mode = options.mode

    def nearest() -> Nearest | Words:
        return source.nearest(options.leg_limit).above(options.min_score)

    def words() -> Nearest | Words:
        return source.words(options.leg_limit)

    run = partial(run_leg, deadline=options.deadline, waits=source.waits)
    if mode == "keyword" or (mode == "hybrid" and not source.embeds):
        return {"keyword": run("keyword", words)}
    if mode == "hybrid":
        both = run_legs({"vector": nearest, "keyword": words}, deadline=options.deadline, waits=source.waits)
        return {"vector": both["vector"], "keyword": both["keyword"]}
    vector = run("vector", nearest)
    if vector.ok and not source.pending:
        return {"vector": vector}
    # Words answer for what has no vector: everything, or what was written a moment ago.
    return {"vector": vector, "keyword": run("keyword", words)}


def fused(source: Source, options: HybridOptions, outcomes: Outcomes) -> Retrieved:
    """What the legs found as one page of hits, with the times that this took."""
    started = time.perf_counter()
    answer = Answer(source, options, *found_by(outcomes))
    ranked = answer.ranked()
    hits, measuring = answer.hits(answer.page(ranked)), answer.timings["similarity_ms"]
    spent = (time.perf_counter() - started) * 1000
    timings = {"fusion_ms": spent - measuring, "similarity_ms": measuring}
    sure = answer.confidence(ranked)
    return Retrieved(hits, answer.mode, timings=timings, corrected=answer.corrected, confidence=sure)


def cut(found: Retrieved) -> Retrieved:
    """Without the weaker hits, and without any where the first is not likely to be right; says how many those were.

    What waits for its vector is judged by how much of the query its words cover. Where no confidence can be told, as of
    words alone or of a model that was never fitted, nothing is cut.
    """
    if found.confidence is None:
        return found
    kept = [hit for hit in found if (hit.fused if hit.score is None else hit.score) >= MIN_SCORE]
    kept = [] if is_silent(found.confidence) else kept
    return replace(found, hits=tuple(kept), left_out=found.left_out + len(found) - len(kept))


def found_by(outcomes: Outcomes) -> tuple[Nearest | None, Words | None]:
    """What the legs found; None of one that failed or was not asked."""
    return tuple(outcomes[leg].value if leg in outcomes else None for leg in ("vector", "keyword"))  # type: ignore[return-value]


def check_answered(outcomes: Outcomes) -> None:
    """Raise RetrievalFailed, with the causes, where no leg answered."""
    causes: dict[str, BaseException] = {leg: one.error for leg, one in outcomes.items() if one.error is not None}
    if len(causes) < len(outcomes):
        return
    reasons = "; ".join(f"{leg}: {cause}" for leg, cause in causes.items())
    log.error("知识库检索失败: %s", reasons)
    failure = RetrievalFailed(f"知识库检索失败 (retrieval failed): {reasons}", causes=causes)
    raise failure from next(iter(causes.values()))


def concluded(answer: Retrieved, outcomes: Outcomes, started: float, on_failure: OnFailure) -> Retrieved:
    """The answer with its times, and with what it says about a leg that failed."""
    timings = {f"{leg}_ms": outcome.milliseconds for leg, outcome in outcomes.items()} | dict(answer.timings)
    timings["total_ms"] = (time.perf_counter() - started) * 1000
    for leg, outcome in outcomes.items():
        if outcome.error is not None:
            on_failure(leg, outcome.error)
            reason = f"{leg}:{outcome.code}"
            return replace(answer, degraded=True, reason=reason, notice=NOTICES[leg], timings=timings)
    return replace(answer, timings=timings)


@dataclass(frozen=True, slots=True)
class _Place:
    """A hit before it is read: its id, what orders it, and what each leg brought to that."""

    id: str
    fused: float
    cosine: float | None
    score: float | None
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Answer:
    """What each leg found in a source; None of one that failed or was not asked."""

    source: Source
    options: HybridOptions
    nearest: Nearest | None
    words: Words | None
    timings: dict[str, float] = field(default_factory=lambda: {"similarity_ms": 0.0})
    """Milliseconds that the other leg was asked for what only one found."""

    @property
    def mode(self) -> Mode:
        """Which legs answered."""
        if self.nearest is None:
            return "keyword"
        return "hybrid" if self.words is not None and self.options.mode == "hybrid" else "semantic"

    def ranked(self) -> list[Ranked]:
        """All that was found, the best first, where both measures decide; without vectors by how much of the query each
        covers, which means the same everywhere."""
        if self.mode == "semantic" or self._is_by_places:
            return []
        assert self.words is not None
        near = () if self.nearest is None else self.nearest.cosines
        found = dict.fromkeys([*near, *(one.id for one in self.words.found)])
        return rank(self._measured(found), self.words)

    def page(self, ranked: Sequence[Ranked]) -> list[_Place]:
        """What is shown, the best first."""
        if self._is_by_places:
            return self._by_places()
        return self._by_meaning() if self.mode == "semantic" else self._by_evidence(ranked)

    @property
    def _is_by_places(self) -> bool:
        return self.options.fusion == "rrf" and self.options.mode == "hybrid"

    def confidence(self, ranked: Sequence[Ranked]) -> float | None:
        """How likely the first hit is right, where both measures say so."""
        if self.mode != "hybrid" or self._is_by_places:
            return None
        return confidence(self.source.query, [(one.similarity, one.cosine) for one in ranked], self.words, self._scale)

    def hits(self, page: Sequence[_Place]) -> tuple[Hit, ...]:
        """The page that is shown, read at once."""
        if not page:
            return ()
        records = self.source.read([one.id for one in page])
        explains, ranks = self.options.explains, self._ranks()
        waiting = self.source.waiting([one.id for one in page if one.cosine is None])
        return tuple(
            Hit(
                id=place.id,
                collection=self.source.collection,
                text=records[place.id].text,
                metadata=records[place.id].metadata,
                score=place.score,
                cosine=place.cosine,
                fused=place.fused,
                legs=tuple(self._legs(place, ranks)),
                keywords=self._matched(records[place.id]) if explains and place.id in ranks["keyword"] else (),
                pending=place.id in waiting,
            )
            for place in page
            if place.id in records
        )

    @property
    def corrected(self) -> Mapping[str, str]:
        """Words of the query that no text holds, and what they were read as."""
        return {} if self.words is None else self.words.corrected

    def _matched(self, record: VectorRecord) -> tuple[str, ...]:
        """The words of the query that a record holds, as they were read."""
        found = self.source.matched(record)
        if self.corrected:
            found += tuple(matched_terms(" ".join(self.corrected.values()), record.text))
        return found

    def _by_meaning(self) -> list[_Place]:
        """The nearest, and behind them what shares words and has no vector yet."""
        assert self.nearest is not None
        limit = self.options.limit
        near = sorted(self.nearest.cosines.items(), key=lambda one: (-one[1], one[0]))[:limit]
        places = [
            _Place(name, cosine, cosine, score_of(cosine, self._scale), {"vector": cosine}) for name, cosine in near
        ]
        if len(places) == limit or self.words is None:
            return places
        waiting = [one for one in self._measured([one.id for one in self.words.found]) if one.cosine is None]
        return [*places, *(_Place(one.id, 0.0, None, None, {"keyword": one.bm25}) for one in waiting)][:limit]

    def _by_evidence(self, ranked: Sequence[Ranked]) -> list[_Place]:
        assert self.words is not None
        return [
            _Place(
                one.id,
                one.similarity,
                one.cosine,
                None if one.cosine is None else score(one.similarity, self._scale, self.words),
                {"vector": one.cosine or 0.0, "keyword": one.by_words},
            )
            for one in ranked[: self.options.limit]
        ]

    def _by_places(self) -> list[_Place]:
        options, ranks = self.options, self._ranks()
        rankings = [
            Ranking("vector", list(ranks["vector"]), options.vector_weight),
            Ranking("keyword", list(ranks["keyword"]), options.keyword_weight),
        ]
        fused = rrf(rankings, k=options.rrf_k)[: options.limit]
        cosines: dict[str, float | None] = {}
        if self.nearest is not None:
            cosines |= self.nearest.cosines
            missing = [one.id for one in fused if one.id not in cosines]
            cosines |= {one.id: one.cosine for one in self._measured(missing)}
        scores = {name: score_of(cosine, self._scale) for name, cosine in cosines.items() if cosine is not None}
        return [_Place(one.id, one.score, cosines.get(one.id), scores.get(one.id), one.shares) for one in fused]

    def _measured(self, ids: Iterable[str]) -> list[Measured]:
        """These as both legs see them."""
        started = time.perf_counter()
        found = measured(self.source, ids, self.nearest, self.words, self.options.leg_limit)
        self.timings["similarity_ms"] += (time.perf_counter() - started) * 1000
        return found

    @property
    def _scale(self) -> Scale | None:
        return None if self.nearest is None else self.nearest.scale

    def _ranks(self) -> dict[Leg, dict[str, tuple[int, float]]]:
        """Where each leg saw what it found, and its raw measure."""
        near = {} if self.nearest is None else self.nearest.cosines
        words = () if self.words is None else self.words.found
        by_cosine = sorted(near.items(), key=lambda one: (-one[1], one[0]))
        return {
            "vector": {name: (at, cosine) for at, (name, cosine) in enumerate(by_cosine, start=1)},
            "keyword": {one.id: (at, one.bm25) for at, one in enumerate(words, start=1)},
        }

    def _legs(self, place: _Place, ranks: Mapping[Leg, Mapping[str, tuple[int, float]]]) -> Iterator[LegShare]:
        weights: dict[Leg, float] = {"vector": self.options.vector_weight, "keyword": self.options.keyword_weight}
        for leg, seen in ranks.items():
            if place.id in seen and leg in place.shares:
                at, raw = seen[place.id]
                yield LegShare(leg, at, raw, weights[leg], place.shares[leg])
