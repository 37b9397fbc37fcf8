"""One search for every capability: a vector leg and a keyword leg side by side, fused, explained.

When one leg fails or is too slow, the other answers and the answer says so; only when both fail is there an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from homing.embedders.provider import EmbeddingProvider
from homing.engine.fusion import DEFAULT_K, Ranking, rrf
from homing.engine.models import ModelsInUse, as_models
from homing.engine.ranking import rank
from homing.errors import InvalidArgument, ModelMismatch, RetrievalFailed, StoreError
from homing.legs import Outcome, run_leg, run_legs
from homing.records import Hit, Leg, LegShare, Mode, Notice, Retrieved, VectorRecord
from homing.stores.store import MAX_LIMIT, Measured, SearchOptions, Store, Words
from homing.text.tokens import matched_terms
from homing.vectors import Scale, Vector, as_vector, score_of

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


@dataclass(frozen=True, slots=True)
class HybridOptions:
    """How to search.

    `min_score` is a threshold on the readable score and concerns the vector leg only; None is no threshold, 0 is one.
    `deadline` is how long, in seconds, an answer waits for its legs. `depth` is how many matches each leg brings to the
    fusion; by default more than `limit`, because a record 12th in both lists beats one that is first in a single list.

    `fusion="evidence"` measures what only one leg found by the other, too, and ranks by both measures (`ranking`);
    `fusion="rrf"` ranks by the places in the two lists, weighed, and knows nothing else.
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
    started = time.perf_counter()
    question = _Question(query, collection, store, as_models(embedder), options)
    outcomes = question.ask()
    failed = {leg: outcome for leg, outcome in outcomes.items() if not outcome.ok}
    if len(failed) == len(outcomes):
        raise _all_failed(failed)
    nearest = outcomes["vector"].value if "vector" in outcomes else None
    worded = outcomes["keyword"].value if "keyword" in outcomes else None
    answer = _Answer(
        question,
        nearest if isinstance(nearest, _Nearest) else None,
        worded if isinstance(worded, Words) else None,
    )
    hits = answer.hits()
    timings = {f"{leg}_ms": outcome.milliseconds for leg, outcome in outcomes.items()}
    timings["total_ms"] = (time.perf_counter() - started) * 1000
    for leg, outcome in failed.items():
        assert outcome.error is not None
        on_failure(leg, outcome.error)
        return Retrieved(hits, answer.mode, True, f"{leg}:{outcome.code}", NOTICES[leg], timings)
    return Retrieved(hits, answer.mode, timings=timings)


@dataclass(frozen=True, slots=True)
class _Nearest:
    """What the vector leg found: cosines by id, the vector it asked with, and how its model's cosines read."""

    cosines: Mapping[str, float] = field(default_factory=dict)
    vector: Vector | None = None
    scale: Scale | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """A query put to one collection, with all that answering it takes; one method per leg."""

    query: str
    collection: str
    store: Store
    models: ModelsInUse
    options: HybridOptions

    def ask(self) -> dict[Leg, Outcome[_Nearest | Words]]:
        """The outcome of each leg that this question needs."""
        deadline, mode = self.options.deadline, self.options.mode
        if mode == "keyword" or (mode == "hybrid" and not self.models.embeds):
            return {"keyword": run_leg("keyword", self.words, deadline=deadline)}
        if mode == "hybrid":
            both = run_legs({"vector": self.nearest, "keyword": self.words}, deadline=deadline)
            return {"vector": both["vector"], "keyword": both["keyword"]}
        vector: Outcome[_Nearest | Words] = run_leg("vector", self.nearest, deadline=deadline)
        if vector.ok and not self.store.pending(self.collection):
            return {"vector": vector}
        # Words answer for what has no vector: everything, or what was written a moment ago.
        return {"vector": vector, "keyword": run_leg("keyword", self.words, deadline=deadline)}

    def words(self) -> _Nearest | Words:
        """The keyword leg."""
        return self.store.search_words(self.collection, self.query, self.options.leg_limit, self._narrowed())

    def nearest(self) -> _Nearest | Words:
        """The vector leg, asked with the model that serves the collection; the default where none does yet."""
        model = self.store.model_of(self.collection)
        if not model and not self.store.pending(self.collection):
            # Nothing is there: whether the model answers makes no difference.
            return _Nearest()
        try:
            return self._nearest(model)
        except ModelMismatch:
            # Another model may have begun to serve the collection since it was asked for it.
            now = self.store.model_of(self.collection)
            if now == model:
                raise
            return self._nearest(now)

    def _nearest(self, model: str) -> _Nearest:
        embedder = self.models.provider(model)
        vector = as_vector(embedder.embed([self.query], kind="query")[0], dimensions=embedder.dimensions)
        found = self.store.search_vector(
            self.collection, vector, self.options.leg_limit, self._narrowed(model=embedder.id)
        )
        floor = self.options.min_score
        cosines = {
            one.id: one.cosine for one in found if floor is None or score_of(one.cosine, embedder.scale) >= floor
        }
        return _Nearest(cosines, vector, embedder.scale)

    def _narrowed(self, model: str = "") -> SearchOptions:
        return SearchOptions(self.options.metadata_filter, model=model)


@dataclass(frozen=True, slots=True)
class _Place:
    """A hit before it is read: its id, what orders it, and what each leg brought to that."""

    id: str
    fused: float
    cosine: float | None
    similarity: float
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the legs found, made into hits."""

    question: _Question
    nearest: _Nearest | None
    worded: Words | None

    @property
    def mode(self) -> Mode:
        """Which legs answered."""
        if self.nearest is None:
            return "keyword"
        return "hybrid" if self.worded is not None and self.question.options.mode == "hybrid" else "semantic"

    def hits(self) -> tuple[Hit, ...]:
        """The page that is shown, read in one statement."""
        match self.mode:
            case "keyword":
                places = self._by_words()
            case "semantic":
                places = self._by_meaning()
            case "hybrid":
                places = self._by_places() if self.question.options.fusion == "rrf" else self._by_evidence()
        page = places[: self.question.options.limit]
        records = self.question.store.get(self.question.collection, [one.id for one in page], embeddings=False)
        by_id = {one.id: one for one in records}
        ranks, waiting = self._ranks(), self._waiting([one.id for one in page if one.cosine is None])
        return tuple(
            Hit(
                id=place.id,
                collection=self.question.collection,
                text=by_id[place.id].text,
                metadata=by_id[place.id].metadata,
                score=None if place.cosine is None else self._score(place.similarity),
                cosine=place.cosine,
                fused=place.fused,
                legs=tuple(self._legs(place, ranks)),
                keywords=tuple(matched_terms(self.question.query, by_id[place.id].text))
                if place.id in ranks["keyword"]
                else (),
                pending=place.id in waiting,
            )
            for place in page
            if place.id in by_id and not (place.id in ranks["keyword"] and _says_nothing(by_id[place.id]))
        )

    def _by_words(self) -> list[_Place]:
        """By how much of the query each covers, which means the same in every collection."""
        assert self.worded is not None
        found = [Measured(one.id, None, one.bm25) for one in self.worded.found]
        return [
            _Place(one.id, one.similarity, None, 0.0, {"keyword": one.similarity})
            for one in rank(found, mass=self.worded.mass, rarest=self.worded.rarest)
        ]

    def _by_meaning(self) -> list[_Place]:
        """The nearest, and behind them what shares words and has no vector yet."""
        assert self.nearest is not None
        near = sorted(self.nearest.cosines.items(), key=lambda one: (-one[1], one[0]))
        places = [_Place(name, cosine, cosine, cosine, {"vector": cosine}) for name, cosine in near]
        if len(places) >= self.question.options.limit or self.worded is None:
            return places
        words = {one.id: one.bm25 for one in self.worded.found}
        waiting = [one for one in self._measured(list(words)) if one.cosine is None]
        return places + [_Place(one.id, 0.0, None, 0.0, {"keyword": one.bm25}) for one in waiting]

    def _by_evidence(self) -> list[_Place]:
        assert self.nearest is not None
        assert self.worded is not None
        words = {one.id: one.bm25 for one in self.worded.found}
        cosines = self.nearest.cosines
        both = [Measured(name, cosines[name], words[name]) for name in cosines if name in words]
        others = self._measured([name for name in {**cosines, **words} if not (name in cosines and name in words)])
        return [
            _Place(
                one.id,
                one.similarity,
                one.cosine,
                one.similarity,
                {"vector": one.cosine or 0.0, "keyword": one.by_words},
            )
            for one in rank([*both, *others], mass=self.worded.mass, rarest=self.worded.rarest)
        ]

    def _by_places(self) -> list[_Place]:
        assert self.nearest is not None
        assert self.worded is not None
        options, cosines = self.question.options, dict[str, float | None](self.nearest.cosines)
        rankings = [
            Ranking("vector", list(self._ranks()["vector"]), options.vector_weight),
            Ranking("keyword", [one.id for one in self.worded.found], options.keyword_weight),
        ]
        fused = rrf(rankings, k=options.rrf_k)[: options.limit]
        missing = [one.id for one in fused if one.id not in cosines]
        cosines.update({one.id: one.cosine for one in self._measured(missing)})
        return [_Place(one.id, one.score, cosines.get(one.id), cosines.get(one.id) or 0.0, one.shares) for one in fused]

    def _measured(self, ids: Sequence[str]) -> list[Measured]:
        """What the other leg says of what only one found; where that cannot be read, without it."""
        vector = None if self.nearest is None else self.nearest.vector
        try:
            return self.question.store.measure(self.question.collection, ids, vector=vector, query=self.question.query)
        except StoreError as error:
            log.warning("cannot measure %d hits by the other leg: %s", len(ids), error)
            near = {} if self.nearest is None else self.nearest.cosines
            words = {} if self.worded is None else {one.id: one.bm25 for one in self.worded.found}
            return [Measured(name, near.get(name), words.get(name, 0.0)) for name in ids]

    def _waiting(self, ids: Sequence[str]) -> set[str]:
        """Which of these are still to get a vector: of an answer by words alone, most may have one."""
        store, collection = self.question.store, self.question.collection
        if not ids or not self.question.models.embeds or not store.pending(collection):
            return set()
        return set(store.texts(collection, ids, lacking=store.model_of(collection)))

    def _score(self, similarity: float) -> float:
        return score_of(similarity, None if self.nearest is None else self.nearest.scale)

    def _ranks(self) -> dict[Leg, dict[str, tuple[int, float]]]:
        """Where each leg saw what it found, and its raw measure."""
        near = {} if self.nearest is None else self.nearest.cosines
        words = () if self.worded is None else self.worded.found
        by_cosine = sorted(near.items(), key=lambda one: (-one[1], one[0]))
        return {
            "vector": {name: (at, cosine) for at, (name, cosine) in enumerate(by_cosine, start=1)},
            "keyword": {one.id: (at, one.bm25) for at, one in enumerate(words, start=1)},
        }

    def _legs(self, place: _Place, ranks: Mapping[Leg, Mapping[str, tuple[int, float]]]) -> Iterator[LegShare]:
        options = self.question.options
        weights: dict[Leg, float] = {"vector": options.vector_weight, "keyword": options.keyword_weight}
        for leg, seen in ranks.items():
            if place.id in seen and leg in place.shares:
                at, raw = seen[place.id]
                yield LegShare(leg, at, raw, weights[leg], place.shares[leg])


def _says_nothing(record: VectorRecord) -> bool:
    """Whether a record has no words: one that was found by some has lost them since."""
    return not record.text and not record.keywords


def _all_failed(failed: Mapping[Leg, Outcome[_Nearest | Words]]) -> RetrievalFailed:
    causes: dict[str, BaseException] = {leg: one.error for leg, one in failed.items() if one.error is not None}
    reasons = "; ".join(f"{leg}: {cause}" for leg, cause in causes.items())
    log.error("知识库检索失败: %s", reasons)
    failure = RetrievalFailed(f"知识库检索失败 (retrieval failed): {reasons}", causes=causes)
    failure.__cause__ = next(iter(causes.values()))
    return failure
