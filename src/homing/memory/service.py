"""Remember, recall, forget: one question is put to several collections at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from homing.embedders.provider import EmbeddingProvider
from homing.engine import Engine
from homing.engine.engine import check_transactional
from homing.engine.search import HybridOptions, log_failure, search
from homing.engine.source import EmbedOnce, ModelsInUse, as_models, may_wait
from homing.engine.work import IMPORT
from homing.errors import EmbeddingError, InvalidArgument, RetrievalFailed
from homing.legs import Outcome, run_legs
from homing.memory.content import COLLECTIONS, ContentStore, Entry, SessionKey, session_text
from homing.progress import Progress
from homing.records import Hit, Leg, Mode, Retrieved
from homing.stores.store import MAX_LIMIT, Store
from homing.vectors import score_of

if TYPE_CHECKING:
    from homing.chat import ChatModel
    from homing.memory.adapter import ContextAwareModelAdapter

log = logging.getLogger(__name__)

MAX_TOKENS = 1500
"""How much of what is remembered goes into a prompt."""
MEMORIES = ("observation", "reflection")
"""What belongs to a session; knowledge and learning belong to all of them."""


@dataclass(frozen=True, slots=True)
class RetrieveOptions:
    """What to recall.

    `collections` empty means all. `session_key` keeps results to one session, strictly, in every collection that
    `session_scoped` names (empty: all). `max_distance` leaves out what is farther (`1 - cosine`); 0.0 is off. `limits`
    and `weights` are by collection: how many hits one may bring, and what its scores are multiplied with when the
    collections are merged.

    `mode="hybrid"` lets words have a say in what is recalled, `mode="semantic"` takes the nearest and nothing else.
    """

    limit: int = 5
    collections: tuple[str, ...] = ()
    session_key: SessionKey | None = None
    session_scoped: tuple[str, ...] = ()
    metadata_filter: Mapping[str, Any] | None = None
    max_distance: float = 0.0
    mode: Mode = "hybrid"
    limits: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    deadline: float = 5.0

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise InvalidArgument(f"limit must not be negative; got {self.limit}")
        if not 0.0 <= self.max_distance <= 2.0:
            raise InvalidArgument(f"max_distance lies between 0 (off) and 2; got {self.max_distance}")
        if self.session_key is not None:
            session_text(self.session_key)

    def filter_of(self, collection: str) -> dict[str, Any]:
        """The metadata that hits of a collection must have."""
        wanted = dict(self.metadata_filter or {})
        session = "" if self.session_key is None else session_text(self.session_key)
        scoped = not self.session_scoped or collection in self.session_scoped
        return {**wanted, "session_key": session} if session and scoped else wanted


class RAGService:
    """Recalls memories by meaning and by words.

    The question is embedded once; collections are searched at the same time, and one that fails is logged and left out.
    The `limit` best hits of all collections together come back, the best first. `hybrid` says how the two legs are
    weighed.
    """

    def __init__(
        self,
        *,
        store: Store,
        embedder: EmbeddingProvider | ModelsInUse | None,
        collections: Sequence[str] = COLLECTIONS,
        hybrid: HybridOptions | None = None,
    ) -> None:
        self._store = store
        self._models = as_models(embedder)
        self._hybrid = hybrid or HybridOptions()
        self.collections = tuple(collections)

    def retrieve(self, query: str, options: RetrieveOptions | None = None, **changes: Any) -> Retrieved:
        """What `recall` finds, the nearest first; what has no vector yet comes last."""
        options = replace(options or RetrieveOptions(), **changes)
        found = self.recall(query, options)

        def near(hit: Hit) -> tuple[bool, float]:
            return hit.cosine is None, -(hit.cosine or 0.0) * options.weights.get(hit.collection, 1.0)

        return found.with_hits(sorted(found, key=near))

    def recall(self, query: str, options: RetrieveOptions | None = None, **changes: Any) -> Retrieved:
        """What a question is about, the best first. An empty question recalls nothing and asks nobody."""
        options = replace(options or RetrieveOptions(), **changes)
        started = time.perf_counter()
        names = options.collections or self.collections
        for name in names:
            if name not in self.collections:
                raise InvalidArgument(
                    f"there is no collection {name!r} to recall from; known: {', '.join(self.collections)}"
                )
        if not query.strip() or options.limit == 0 or not names:
            return Retrieved((), options.mode)
        question = _Question(query, options, self._store, EmbedOnce(self._models), self._hybrid)
        outcomes = run_legs(
            {name: partial(question.put_to, name) for name in names},
            deadline=options.deadline + 1,
            waits=may_wait(self._store, self._models),
        )
        question.log_failures()
        answers = {name: outcome.value for name, outcome in outcomes.items() if outcome.value is not None}
        failed = {name: outcome for name, outcome in outcomes.items() if not outcome.ok}
        for name, outcome in failed.items():
            log.warning("recall from collection %r failed and is left out: %s", name, outcome.error)
        if not answers:
            raise _nothing_answered(failed)
        hits = _best([hit for answer in answers.values() for hit in answer], options)
        timings = {f"{name}_ms": outcome.milliseconds for name, outcome in outcomes.items()}
        timings["total_ms"] = (time.perf_counter() - started) * 1000
        chosen = next((answer for answer in answers.values() if answer.degraded), next(iter(answers.values())))
        reason = chosen.reason or next((f"{name}:{outcome.code}" for name, outcome in failed.items()), None)
        corrected = {word: spelling for one in answers.values() for word, spelling in one.corrected.items()}
        degraded = chosen.degraded or bool(failed)
        sure = answers[hits[0].collection].confidence if hits else None
        return Retrieved(hits, chosen.mode, degraded, reason, chosen.notice, timings, corrected, sure)


@dataclass(frozen=True, slots=True)
class _Question:
    """A query with all that putting it to a collection takes, and what failed on the way."""

    query: str
    options: RetrieveOptions
    store: Store
    models: ModelsInUse
    hybrid: HybridOptions
    failures: dict[tuple[Leg, str], Exception] = field(default_factory=dict)

    def put_to(self, collection: str) -> Retrieved:
        """The hits of one collection that are near enough, the best first."""
        wanted = asked = min(self.options.limit, self.options.limits.get(collection, self.options.limit))
        while True:
            options = replace(
                self.hybrid,
                limit=min(asked, MAX_LIMIT // 4),
                mode=self.options.mode,
                min_score=self._floor(collection),
                metadata_filter=self.options.filter_of(collection),
                deadline=self.options.deadline,
            )
            found = search(
                self.query,
                collection,
                store=self.store,
                embedder=self.models,
                options=options,
                on_failure=lambda leg, error: self.failures.update({(leg, str(error)): error}),
            )
            near = [hit for hit in found if self._is_near(hit, found.mode)]
            if len(near) >= wanted or len(found) < options.limit or options.limit < asked:
                return found.with_hits(near[:wanted])
            asked *= 4

    def log_failures(self) -> None:
        """Say once what failed, however many collections it failed for."""
        for (leg, _), error in self.failures.items():
            log_failure(leg, error)

    def _floor(self, collection: str) -> float | None:
        """Lets the vector leg itself leave out what is too far, so that it takes no place from what is near."""
        if not self.options.max_distance or not self.models.embeds:
            return None
        try:
            scale = self.models.provider(self.store.model_of(collection)).scale
        except EmbeddingError:
            return None
        # A little more, for rounding: `_is_near` draws the exact line.
        return score_of(1 - self.options.max_distance - 1e-6, scale)

    def _is_near(self, hit: Hit, mode: Mode) -> bool:
        if not self.options.max_distance or mode == "keyword":
            return True
        # What waits for its vector is judged by how much of the question it covers.
        distance = 1 - hit.fused if hit.distance is None else hit.distance
        return distance <= self.options.max_distance


def _best(found: Sequence[Hit], options: RetrieveOptions) -> tuple[Hit, ...]:
    """The best hits over all collections, the best first."""

    def order(hit: Hit) -> tuple[float, str, str]:
        return -hit.fused * options.weights.get(hit.collection, 1.0), hit.collection, hit.id

    return tuple(sorted(_placed(found), key=order)[: options.limit])


def _placed(found: Sequence[Hit]) -> list[Hit]:
    """The hits with their places, leg by leg, among the hits of all collections."""
    places: dict[tuple[Leg, str, str], int] = {}
    legs: tuple[Leg, ...] = ("vector", "keyword")
    for leg in legs:
        shares = sorted((-one.share, hit.collection, hit.id) for hit in found for one in hit.legs if one.leg == leg)
        places |= {(leg, collection, key): at for at, (_, collection, key) in enumerate(shares, start=1)}
    return [
        replace(hit, legs=tuple(replace(one, rank=places[one.leg, hit.collection, hit.id]) for one in hit.legs))
        for hit in found
    ]


def _nothing_answered(failed: Mapping[str, Outcome[Retrieved]]) -> RetrievalFailed:
    causes: dict[str, BaseException] = {name: one.error for name, one in failed.items() if one.error is not None}
    reasons = "; ".join(f"{name}: {cause}" for name, cause in causes.items())
    return RetrievalFailed(f"知识库检索失败 (no collection could be searched): {reasons}", causes=causes)


class Memory(ContentStore):
    """A memory over an engine, whose worker embeds what is remembered and whose `work` says what waits.

    What is remembered is durable, and found by words, when the call returns. `options` are the defaults of `recall`;
    without `enabled`, `wrap` adds nothing.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        options: RetrieveOptions | None = None,
        hybrid: HybridOptions | None = None,
        enabled: bool = True,
    ) -> None:
        check_transactional(engine.store, "memories")
        super().__init__(engine)
        self._options = options or RetrieveOptions()
        self._enabled = enabled
        self.service = RAGService(store=engine.store, embedder=engine.models, hybrid=hybrid)

    def remember(self, collection: str, text: str, **fields: Any) -> Entry:
        """Save a text in a collection; `fields` are entry_id, session_key, category, tags and metadata."""
        return self.add(collection, text, **fields)

    def recall(self, query: str, options: RetrieveOptions | None = None, **changes: Any) -> Retrieved:
        """What a question is about, the best first; see `RAGService`."""
        return self.service.recall(query, options or self._options, **changes)

    def forget(self, collection: str, ids: Sequence[str]) -> int:
        """Delete entries; they are not recalled any more. Returns how many there were."""
        return self.delete(collection, ids)

    def reindex(self, progress: Progress | None = None) -> int:
        """Ask again for every vector that is missing, dead letters included; returns how many were asked for.

        `progress` is called with how many that are so far, and how many there will be. What was copied into the store
        is listed from then on, too.
        """
        for name in self.collections:
            self.list_again(name)
        if not self._engine.models.embeds:
            return 0
        asked, total = 0, sum(map(self._store.pending, self.collections))
        for name in self.collections:
            for count in self._engine.collection(name).embed_missing(priority=IMPORT):
                asked += count
                if progress is not None:
                    progress(asked, max(asked, total))
        return asked

    def wrap(
        self,
        chat_model: ChatModel,
        *,
        session_key: SessionKey | None = None,
        session_scoped: Sequence[str] = MEMORIES,
        max_tokens: int = MAX_TOKENS,
    ) -> ContextAwareModelAdapter:
        """The chat model with this memory in its system prompt."""
        from homing.memory.adapter import ContextAwareModelAdapter

        return ContextAwareModelAdapter(
            chat_model,
            self.service,
            session_key=session_key,
            session_scoped=session_scoped,
            options=self._options,
            max_tokens=max_tokens,
            enabled=self._enabled,
        )
