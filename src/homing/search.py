"""One search for every capability: a vector leg and a keyword leg side by side, fused, explained.

When one leg fails or is too slow, the other answers and the answer says so; only when both fail is there an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from homing.embedders.chosen import provider_for
from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument, ModelMismatch, ProviderUnavailable, RetrievalFailed, StoreError
from homing.fusion import DEFAULT_K, Ranking, rrf
from homing.legs import Outcome, run_leg, run_legs
from homing.records import Hit, Leg, LegShare, Match, Mode, Notice, Retrieved
from homing.stores.store import MAX_LIMIT, SearchOptions, Store
from homing.stores.switching import model_of
from homing.text.tokens import matched_terms
from homing.vectors import Vector, score_of

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


@dataclass(frozen=True, slots=True)
class HybridOptions:
    """How to search.

    `min_score` is a threshold on the readable score and concerns the vector leg only; None is no threshold, 0 is one.
    `deadline` is how long, in seconds, an answer waits for its legs. `depth` is how many matches each leg brings to the
    fusion; by default more than `limit`, because a record 12th in both lists beats one that is first in a single list.
    """

    limit: int = 10
    mode: Mode = "hybrid"
    min_score: float | None = None
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    vector_weight: float = 0.7
    keyword_weight: float = 0.3
    rrf_k: int = DEFAULT_K
    deadline: float = 5.0
    depth: int | None = None

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
        wanted = 2 * self.limit + 10 if self.depth is None else self.depth
        return max(self.limit, min(wanted, MAX_LIMIT))


def search(
    query: str,
    collection: str,
    *,
    store: Store,
    embedder: EmbeddingProvider | None,
    options: HybridOptions | None = None,
) -> Retrieved:
    """The records of a collection that a query is about, best first, each with its explanation.

    A blank query has no hits. Without an embedder the keyword leg answers alone, which is a degraded answer only where
    semantic results were asked for. Raises RetrievalFailed when no leg could answer.
    """
    options = options or HybridOptions()
    if not query.strip() or options.limit == 0:
        return Retrieved((), options.mode)
    started = time.perf_counter()
    question = _Question(query, collection, store, embedder, options)
    outcomes = _ask(question)
    answers = {leg: outcome.value for leg, outcome in outcomes.items() if outcome.value is not None}
    failed = {leg: outcome for leg, outcome in outcomes.items() if not outcome.ok}
    if not answers:
        raise _all_failed(failed)
    hits = _explain(question, answers)
    timings = {f"{leg}_ms": outcome.milliseconds for leg, outcome in outcomes.items()}
    timings["total_ms"] = (time.perf_counter() - started) * 1000
    for leg, outcome in failed.items():
        log.warning("%s: %s", WARNINGS[leg], outcome.error)
        return Retrieved(hits, _mode(answers), True, f"{leg}:{outcome.code}", NOTICES[leg], timings)
    return Retrieved(hits, _mode(answers), timings=timings)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The matches of one leg; the vector leg also hands on the vector it asked with, and the model that made it."""

    matches: Sequence[Match]
    vector: Vector | None = None
    embedder: EmbeddingProvider | None = None

    def score(self, cosine: float) -> float:
        return score_of(cosine, None if self.embedder is None else self.embedder.scale)


@dataclass(frozen=True, slots=True)
class _Question:
    """A query put to one collection, with all that answering it takes; one method per leg."""

    query: str
    collection: str
    store: Store
    embedder: EmbeddingProvider | None
    options: HybridOptions

    def vector(self) -> _Answer:
        answer = self._nearest(self._embedder())
        floor = self.options.min_score
        if floor is None:
            return answer
        kept = [one for one in answer.matches if one.cosine is not None and answer.score(one.cosine) >= floor]
        return replace(answer, matches=kept)

    def _nearest(self, embedder: EmbeddingProvider) -> _Answer:
        vector = embedder.embed([self.query], kind="query")[0]
        narrowed = SearchOptions(self.options.metadata_filter, model=embedder.id)
        try:
            return _Answer(
                self.store.search(self.collection, vector, self.options.leg_limit, narrowed), vector, embedder
            )
        except ModelMismatch:
            # The collection may have changed its model since it was asked for it.
            now = self._embedder()
            if now.id == embedder.id:
                raise
            return self._nearest(now)

    def _embedder(self) -> EmbeddingProvider:
        """The model that made the vectors of the collection; the default where it has none."""
        if self.embedder is None:
            raise ProviderUnavailable("no embedding model is configured; set embedding.provider or search by keywords")
        return provider_for(self.embedder, model_of(self.store, self.collection))

    def keyword(self) -> _Answer:
        narrowed = SearchOptions(self.options.metadata_filter)
        return _Answer(self.store.search_text(self.collection, self.query, self.options.leg_limit, narrowed))


def _ask(question: _Question) -> dict[Leg, Outcome[_Answer]]:
    deadline = question.options.deadline
    mode = question.options.mode
    if mode == "keyword" or (mode == "hybrid" and question.embedder is None):
        return {"keyword": run_leg("keyword", question.keyword, deadline=deadline)}
    if mode == "hybrid":
        both = run_legs({"vector": question.vector, "keyword": question.keyword}, deadline=deadline)
        return {"vector": both["vector"], "keyword": both["keyword"]}
    vector = run_leg("vector", question.vector, deadline=deadline)
    if vector.ok:
        return {"vector": vector}
    return {"vector": vector, "keyword": run_leg("keyword", question.keyword, deadline=deadline)}


def _mode(answers: Mapping[Leg, _Answer]) -> Mode:
    if len(answers) == 2:
        return "hybrid"
    return "semantic" if "vector" in answers else "keyword"


def _all_failed(failed: Mapping[Leg, Outcome[_Answer]]) -> RetrievalFailed:
    causes: dict[str, BaseException] = {leg: one.error for leg, one in failed.items() if one.error is not None}
    told = "; ".join(f"{leg}: {cause}" for leg, cause in causes.items())
    log.error("知识库检索失败: %s", told)
    failure = RetrievalFailed(f"知识库检索失败 (retrieval failed): {told}", causes=causes)
    failure.__cause__ = next(iter(causes.values()))
    return failure


def _explain(question: _Question, answers: Mapping[Leg, _Answer]) -> tuple[Hit, ...]:
    options = question.options
    weights: dict[Leg, float] = {"vector": options.vector_weight, "keyword": options.keyword_weight}
    matches: dict[Leg, dict[str, Match]] = {
        leg: {match.id: match for match in answer.matches} for leg, answer in answers.items()
    }
    rankings = [Ranking(leg, list(found), weights[leg]) for leg, found in matches.items()]
    best = rrf(rankings, k=options.rrf_k)[: options.limit]
    cosines = _cosines(question, answers, matches, [fused.id for fused in best])
    hits = []
    for fused in best:
        found = {leg: by_id[fused.id] for leg, by_id in matches.items() if fused.id in by_id}
        match = next(iter(found.values()))
        cosine = cosines.get(fused.id)
        hits.append(
            Hit(
                id=fused.id,
                collection=question.collection,
                text=match.text,
                metadata=match.metadata,
                score=None if cosine is None else answers["vector"].score(cosine),
                cosine=cosine,
                fused=fused.score,
                legs=tuple(
                    LegShare(leg, fused.ranks[leg], _raw(one), weights[leg], fused.shares[leg])
                    for leg, one in found.items()
                ),
                keywords=tuple(matched_terms(question.query, match.text)) if "keyword" in found else (),
            )
        )
    return tuple(hits)


def _raw(match: Match) -> float:
    return match.cosine if match.cosine is not None else match.score or 0.0


def _cosines(
    question: _Question,
    answers: Mapping[Leg, _Answer],
    matches: Mapping[Leg, Mapping[str, Match]],
    ids: Sequence[str],
) -> dict[str, float]:
    """The cosine of every hit, also of those that only keywords found: people compare hits by one number."""
    if "vector" not in answers or (vector := answers["vector"].vector) is None:
        return {}
    known = {one.id: one.cosine for one in matches["vector"].values() if one.cosine is not None}
    missing = [one for one in ids if one not in known]
    try:
        others = question.store.get(question.collection, missing) if missing else []
    except StoreError as error:
        log.warning("cannot read the vectors of %d keyword hits: %s", len(missing), error)
        others = []
    model = answers["vector"].embedder
    return known | {
        one.id: float(one.embedding @ vector)
        for one in others
        if one.embedding is not None and (model is None or one.model == model.id)
    }
