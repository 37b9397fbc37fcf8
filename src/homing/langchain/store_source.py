"""The rows of one user in a store of Homing.

Where the store keeps users apart by itself, its view is used. Elsewhere whose a record is stands in its metadata, and
the condition on it is part of the filter of both legs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from homing.embedders.chosen import ChoosesModel
from homing.embedders.provider import EmbeddingProvider
from homing.engine.embed_once import EmbedOnce
from homing.engine.models import FixedModel
from homing.engine.source import Nearest, StoreSource
from homing.errors import InvalidArgument
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.source import Place, UserSource
from homing.langchain.store_filter import store_filter
from homing.records import KeywordMatch, Match, VectorRecord
from homing.stores.filters import wanted
from homing.stores.store import MAX_LIMIT, Measured, MultiUserStore, SearchOptions, Store, Worded, Words
from homing.text.containment import Containment
from homing.vectors import Vector

COUNTED = 50
"""Of how many records, the most relevant, the keywords are counted; of more where more are asked for."""

M = TypeVar("M", bound=Match)
Found = tuple[Match, tuple[str, ...]]
"""A record, and the keywords that it contains."""


@runtime_checkable
class CountsKeywords(Protocol):
    """A store that counts keywords by itself, in all of its records."""

    def search_keywords(
        self, collection: str, keywords: Sequence[str], limit: int = 10, options: SearchOptions | None = None
    ) -> list[KeywordMatch]:
        """The records that contain keywords, those with most of them first, then the more relevant."""


def collection_of(
    store: Store, user_id: int | str, collection: str, user_key: str, embedder: EmbeddingProvider
) -> Place:
    """One user's part of a collection. Raises InvalidArgument where it cannot be told which that is."""
    if isinstance(store, MultiUserStore):
        if store.user_id and store.user_id != str(user_id):
            raise InvalidArgument(
                f"this is the store of user {store.user_id!r}, and the retriever is for {user_id!r}; "
                "give it the store that both came from"
            )
        own = store if store.user_id else store.for_user(user_id)
        return partial(CollectionSource, own, collection, None, embedder, user_id)
    if not user_key or user_key.startswith("$"):
        raise InvalidArgument(f"user_key names the metadata that says whose a record is; got {user_key!r}")
    return partial(CollectionSource, store, collection, user_key, embedder, user_id)


class CollectionSource(UserSource):
    """A query put to a store; the keyword leg goes by the number of keywords, or by BM25 over the whole query.

    Without a `user_key` every record of the store is the user's.
    """

    def __init__(
        self,
        store: Store,
        collection: str,
        user_key: str | None,
        embedder: EmbeddingProvider,
        user_id: int | str,
        query: str,
        options: HybridRetrieverOptions,
    ) -> None:
        super().__init__(query, options, user_id, collection)
        self._user_key = user_key
        self._chooses = isinstance(embedder, ChoosesModel)
        conditions = [] if user_key is None else [{user_key: {"$eq": user_id}}]
        conditions += [store_filter(options.filter)] if options.filter else []
        self._narrowed = SearchOptions({"$and": conditions} if conditions else {})
        wanted(self._narrowed)
        models = EmbedOnce(FixedModel(embedder))
        self._store = store
        self._inner = WithRows(query, collection, store, models, self._narrowed.metadata_filter, self._own)

    def by_vector(self, limit: int) -> Nearest:
        """The nearest records."""
        # Only an embedder with a choice is worth the question which model serves the collection.
        found = self._inner.nearest(limit) if self._chooses else self._inner.nearest_by("", limit)
        # Records of others may have been left out on the way.
        return replace(found, complete=False)

    def by_keywords(self, limit: int) -> Words:
        """The records with most of the keywords and among equals the more relevant, or the most relevant."""
        found = self._by_count(limit) if self.options.keyword_ranking == "count" else self._relevant(self.query, limit)
        self.held |= {match.id: keywords for match, keywords in found}
        return Words(tuple(Worded(match.id, float(len(keywords))) for match, keywords in found))

    def _by_count(self, limit: int) -> list[Found]:
        if isinstance(self._store, CountsKeywords):
            counted = self._store.search_keywords(self.collection, self.keywords, limit, self._narrowed)
            return [(one, one.keywords) for one in self._own(counted)]
        found = self._relevant(" ".join(self.keywords), min(MAX_LIMIT, max(COUNTED, 4 * limit)))
        # Sorting keeps the order of relevance, then id, among those with equally many.
        return sorted((one for one in found if one[1]), key=lambda one: -len(one[1]))[:limit]

    def _relevant(self, query: str, limit: int) -> list[Found]:
        containment = Containment(self.keywords)
        found = self._store.search_text(self.collection, query, limit, self._narrowed)
        return [(one, containment.in_text(one.text)) for one in self._own(found)]

    def measure(self, ids: Sequence[str], vector: Vector | None) -> list[Measured]:
        """How near these records are."""
        return self._store.measure(self.collection, ids, vector=vector)

    @property
    def pending(self) -> bool:
        """Whether some records have no vector yet."""
        return self._inner.pending

    def waiting(self, ids: Sequence[str]) -> set[str]:
        """Which of these are still to get a vector."""
        return self._inner.waiting(ids)

    def _own(self, found: Sequence[M]) -> list[M]:
        """Keeps what is the user's: a list that has the user among others meets a filter, and a record that was found
        may have been given away before it was read."""
        own = [
            one for one in found if self._user_key is None or _is_same(one.metadata.get(self._user_key), self.user_id)
        ]
        for one in own:
            self.rows[one.id] = VectorRecord(one.id, self.collection, None, one.metadata, one.text)
        return own


@dataclass(frozen=True, slots=True)
class WithRows(StoreSource):
    """The engine's source, whose vector leg brings the records, so that none of them is read afterwards."""

    own: Callable[[Sequence[Match]], list[Match]] = list

    def cosines(self, vector: Vector, limit: int, options: SearchOptions) -> dict[str, float]:
        """The nearest records and how near they are."""
        found = self.own(self.store.search(self.collection, vector, limit, options))
        return {one.id: one.cosine for one in found if one.cosine is not None}


def _is_same(owner: Any, user_id: int | str) -> bool:
    return type(owner) is type(user_id) and bool(owner == user_id)
