"""Where an answer comes from: two legs that return ids and measures, and the records behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from homing.engine.models import ModelsInUse
from homing.errors import ModelMismatch
from homing.records import VectorRecord
from homing.stores.store import Measured, SearchOptions, Store, Words
from homing.text.tokens import matched_terms
from homing.vectors import Scale, Vector, as_vector, score_of


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
    def collection(self) -> str:
        """What the place is called."""

    @property
    def embeds(self) -> bool:
        """Whether there is a vector leg at all."""

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


@dataclass(frozen=True, slots=True)
class StoreSource:
    """A query put to one collection of a store."""

    query: str
    collection: str
    store: Store
    models: ModelsInUse
    metadata_filter: Mapping[str, Any] = field(default_factory=dict)

    @property
    def embeds(self) -> bool:
        """Whether there is a model."""
        return self.models.embeds

    @property
    def pending(self) -> bool:
        """Whether some texts have no vector yet."""
        return bool(self.store.pending(self.collection))

    def nearest(self, limit: int) -> Nearest:
        """The vector leg, asked with the model that serves the collection; the default where none does yet."""
        model = self.store.model_of(self.collection)
        if not model and not self.pending:
            # Nothing is there: whether the model answers makes no difference.
            return Nearest()
        try:
            return self.nearest_by(model, limit)
        except ModelMismatch:
            # Another model may have begun to serve the collection since it was asked for it.
            now = self.store.model_of(self.collection)
            if now == model:
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
        """The keyword leg."""
        return self.store.search_words(self.collection, self.query, limit, SearchOptions(self.metadata_filter))

    def measure(self, ids: Sequence[str], vector: Vector | None) -> list[Measured]:
        """What the legs would say of these."""
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
