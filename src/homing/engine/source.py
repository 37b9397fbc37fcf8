"""What a query is put to: the models in use, and a place whose two legs return ids and measures."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, Protocol, runtime_checkable

from homing.embedders.provider import EmbeddingProvider, Kind, Wrapper, is_in_process, provider_for
from homing.errors import EmbeddingError, ModelMismatch, ProviderUnavailable, StoreError
from homing.records import VectorRecord
from homing.stores.store import Measured, SearchOptions, Store, Words
from homing.text.tokens import matched_terms
from homing.vectors import Matrix, Scale, Vector, as_vector, score_of

log = logging.getLogger(__name__)


@runtime_checkable
class ModelsInUse(Protocol):
    """Knows the default model and those that made the vectors which are there already. Safe from several threads."""

    @property
    def embeds(self) -> bool:
        """Whether texts are to be embedded at all; asking makes no model."""

    def provider(self, identity: str = "") -> EmbeddingProvider:
        """What makes vectors of this identity; for an empty one, the default as it is now. Raises EmbeddingError."""


class FixedModel:
    """One model for everything, or none."""

    def __init__(self, embedder: EmbeddingProvider | None) -> None:
        self._embedder = embedder

    @property
    def embeds(self) -> bool:
        """Whether there is a model."""
        return self._embedder is not None

    def provider(self, identity: str = "") -> EmbeddingProvider:
        """The model, whatever was asked for; one that knows others is asked for the right one."""
        if self._embedder is None:
            raise ProviderUnavailable("no embedding model is configured; set embedding.provider or search by keywords")
        return provider_for(self._embedder, identity)


def as_models(given: EmbeddingProvider | ModelsInUse | None) -> ModelsInUse:
    """The models behind what a caller gave: one embedder, several, or none."""
    return given if isinstance(given, ModelsInUse) else FixedModel(given)


def may_wait(store: Store, models: ModelsInUse, identity: str = "") -> bool:
    """Whether a question may wait for a store or a model elsewhere; one that cannot be had is not waited for."""
    if store.database is None or store.database.is_remote:
        return True
    try:
        return models.embeds and not is_in_process(models.provider(identity))
    except EmbeddingError:
        return False


class EmbedOnce:
    """The models in use for the length of one question: the first to ask embeds, the others wait and get the same.

    A failure is shared as well, so that a model that is down costs its deadline once. Collections that another model
    serves are asked with that one, once as well.
    """

    def __init__(self, models: ModelsInUse) -> None:
        self._models = models
        self._lock = Lock()
        self._providers: dict[str, EmbeddingProvider] = {}

    @property
    def embeds(self) -> bool:
        """Whether texts are embedded at all."""
        return self._models.embeds

    def provider(self, identity: str = "") -> EmbeddingProvider:
        """What makes vectors of this identity, asked once."""
        if identity not in self._providers:
            made = self._models.provider(identity)
            with self._lock:
                self._providers[identity] = self._providers.setdefault(made.id, _Once(made))
        return self._providers[identity]


class _Once(Wrapper):
    """A provider that remembers what it answered, a failure included."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
        self._lock = Lock()
        self._answers: dict[tuple[Kind, tuple[str, ...]], Matrix | EmbeddingError] = {}

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """The provider's rows, asked for once."""
        key = (kind, tuple(texts))
        with self._lock:
            if key not in self._answers:
                try:
                    self._answers[key] = self._provider.embed(texts, kind=kind)
                except EmbeddingError as error:
                    self._answers[key] = error
        answer = self._answers[key]
        if isinstance(answer, EmbeddingError):
            raise answer
        return answer


@dataclass(frozen=True, slots=True)
class Nearest:
    """What the vector leg found: cosines by id, the vector it asked with, and how its model's cosines read.

    `complete` is whether that is everything with a vector.
    """

    cosines: Mapping[str, float] = field(default_factory=dict)
    vector: Vector | None = None
    scale: Scale | None = None
    complete: bool = False

    def above(self, floor: float | None) -> Nearest:
        """Without what reads as less than a score; None is no threshold."""
        if floor is None:
            return self
        kept = {name: cosine for name, cosine in self.cosines.items() if score_of(cosine, self.scale) >= floor}
        return replace(self, cosines=kept, complete=self.complete and len(kept) == len(self.cosines))


class Source(Protocol):
    """One query put to one place. Its legs may be asked at the same time; whatever they raise is that leg's failure."""

    @property
    def query(self) -> str:
        """What was asked."""

    @property
    def collection(self) -> str:
        """What the place is called."""

    @property
    def embeds(self) -> bool:
        """Whether there is a vector leg at all."""

    @property
    def waits(self) -> bool:
        """Whether a leg may wait for another process; else threads of their own would only take turns."""

    @property
    def pending(self) -> bool:
        """Whether some texts have no vector yet."""

    def nearest(self, limit: int) -> Nearest:
        """The vector leg."""

    def words(self, limit: int) -> Words:
        """The keyword leg."""

    def measure(self, ids: Sequence[str], vector: Vector | None) -> list[Measured]:
        """What the legs would say of these; `vector` is the one that `nearest` asked with."""

    def read(self, ids: Sequence[str]) -> dict[str, VectorRecord]:
        """The records that are still there."""

    def matched(self, record: VectorRecord) -> tuple[str, ...]:
        """The words of the query that a record holds."""

    def waiting(self, ids: Sequence[str]) -> set[str]:
        """Which of these are still to get a vector."""


@dataclass(frozen=True)
class StoreSource:
    """A query put to one collection of a store."""

    query: str
    collection: str
    store: Store
    models: ModelsInUse
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)

    @property
    def embeds(self) -> bool:
        return self.models.embeds

    @cached_property
    def model(self) -> str:
        """The model that serves the collection, as far as was seen; empty where none does yet."""
        return self.store.model_of(self.collection)

    @cached_property
    def waits(self) -> bool:
        try:
            return may_wait(self.store, self.models, self.model)
        except StoreError:
            # The legs find out, and say so.
            return False

    @property
    def pending(self) -> bool:
        return bool(self.store.pending(self.collection))

    def nearest(self, limit: int) -> Nearest:
        """The vector leg, asked with the model that serves the collection; the default where none does yet."""
        if not self.model and not self.pending:
            # Nothing is there: whether the model answers makes no difference.
            return Nearest()
        try:
            return self.nearest_by(self.model, limit)
        except ModelMismatch:
            # Another model may have begun to serve the collection since it was asked for it.
            now = self.store.model_of(self.collection)
            if now == self.model:
                raise
            return self.nearest_by(now, limit)

    def nearest_by(self, model: str, limit: int) -> Nearest:
        """The vector leg, asked with this model; with an empty identity, with the default."""
        embedder = self.models.provider(model)
        # A width of 0 is one that is not known.
        vector = as_vector(embedder.embed([self.query], kind="query")[0], dimensions=embedder.dimensions or None)
        options = SearchOptions(self.metadata_filter, model=embedder.id)
        near = self.cosines(vector, limit, options)
        return Nearest(near, vector, embedder.scale, len(near) < limit)

    def cosines(self, vector: Vector, limit: int, options: SearchOptions) -> dict[str, float]:
        """The nearest records and how near they are."""
        return {one.id: one.cosine for one in self.store.search_vector(self.collection, vector, limit, options)}

    def words(self, limit: int) -> Words:
        return self.store.search_words(self.collection, self.query, limit, SearchOptions(self.metadata_filter))

    def measure(self, ids: Sequence[str], vector: Vector | None) -> list[Measured]:
        return self.store.measure(self.collection, ids, vector=vector, query=self.query)

    def read(self, ids: Sequence[str]) -> dict[str, VectorRecord]:
        """The records, without their vectors, in one statement."""
        return {one.id: one for one in self.store.get(self.collection, ids, embeddings=False)}

    def matched(self, record: VectorRecord) -> tuple[str, ...]:
        """The words of the query that the text holds."""
        return tuple(matched_terms(self.query, record.text))

    def waiting(self, ids: Sequence[str]) -> set[str]:
        """Which of these are still to get a vector: of an answer by words alone, most may have one."""
        if not ids or not self.embeds or not self.pending:
            return set()
        return set(self.store.texts(self.collection, ids, lacking=self.store.model_of(self.collection)))


def measured(
    source: Source, ids: Iterable[str], nearest: Nearest | None, words: Words | None, limit: int
) -> list[Measured]:
    """These ids as both legs see them, which were asked for `limit` matches each.

    A leg that found fewer found everything that there is for it. So only what a full leg left out is looked up; where
    that fails, it counts for nothing.
    """
    cosines = {} if nearest is None else nearest.cosines
    bm25 = {} if words is None else {one.id: one.bm25 for one in words.found}
    by_meaning = nearest is not None and nearest.vector is not None and not nearest.complete
    by_words = words is not None and len(words.found) >= limit
    known, missing = list[Measured](), list[str]()
    for name in ids:
        if (
            (by_meaning and name not in cosines)
            or (by_words and name not in bm25)
            or not (name in cosines or name in bm25)
        ):
            missing.append(name)
        else:
            known.append(Measured(name, cosines.get(name), bm25.get(name, 0.0)))
    if not missing:
        return known
    try:
        return known + source.measure(missing, None if nearest is None else nearest.vector)
    except StoreError as error:
        log.warning("cannot measure %d hits by the other leg: %s", len(missing), error)
        return known + [Measured(name, cosines.get(name), bm25.get(name, 0.0)) for name in missing]
