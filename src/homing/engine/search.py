"""One search for every capability: a vector leg and a keyword leg side by side, fused, explained.

When one leg fails or is too slow, the other answers and the answer says so; only when both fail is there an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from homing.embedders.provider import EmbeddingProvider
from homing.engine.answer import Answer
from homing.engine.fusion import DEFAULT_K
from homing.engine.models import ModelsInUse, as_models
from homing.engine.source import Nearest, Source, StoreSource
from homing.errors import InvalidArgument, RetrievalFailed
from homing.legs import Outcome, run_leg, run_legs
from homing.records import Leg, Mode, Notice, Retrieved
from homing.stores.store import MAX_LIMIT, Store, Words

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
    `deadline` is how long, in seconds, an answer waits for its legs. `depth` is how many matches each leg brings to the
    fusion; by default more than `limit`, because a record 12th in both lists beats one that is first in a single list.

    `fusion="evidence"` measures what only one leg found by the other, too, and ranks by both measures (`ranking`);
    `fusion="rrf"` ranks by the places in the lists of the legs that answered, weighed, and knows nothing else.
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
    return search_source(source, options, on_failure=on_failure)


def search_source(source: Source, options: HybridOptions, *, on_failure: OnFailure = log_failure) -> Retrieved:
    """What a source has to say, as `search` does it for a collection; the query and its filter are the source's."""
    started = time.perf_counter()
    outcomes = ask(source, options)
    check_answered(outcomes)
    return concluded(fused(source, options, outcomes), outcomes, started, on_failure)


def ask(source: Source, options: HybridOptions) -> dict[Leg, Outcome[Nearest | Words]]:
    """The outcome of each leg that the question needs."""
    deadline, mode = options.deadline, options.mode

    def nearest() -> Nearest | Words:
        return source.nearest(options.leg_limit).above(options.min_score)

    def words() -> Nearest | Words:
        return source.words(options.leg_limit)

    if mode == "keyword" or (mode == "hybrid" and not source.embeds):
        return {"keyword": run_leg("keyword", words, deadline=deadline)}
    if mode == "hybrid":
        both = run_legs({"vector": nearest, "keyword": words}, deadline=deadline)
        return {"vector": both["vector"], "keyword": both["keyword"]}
    vector = run_leg("vector", nearest, deadline=deadline)
    if vector.ok and not source.pending:
        return {"vector": vector}
    # Words answer for what has no vector: everything, or what was written a moment ago.
    return {"vector": vector, "keyword": run_leg("keyword", words, deadline=deadline)}


def fused(source: Source, options: HybridOptions, outcomes: Outcomes) -> Retrieved:
    """What the legs found as one page of hits, with the times that this took."""
    started = time.perf_counter()
    answer = Answer(source, options, *found_by(outcomes))
    hits, measuring = answer.hits(), answer.timings["similarity_ms"]
    spent = (time.perf_counter() - started) * 1000
    return Retrieved(hits, answer.mode, timings={"fusion_ms": spent - measuring, "similarity_ms": measuring})


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
