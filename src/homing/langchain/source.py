"""One query put to one user's rows: what both places have in common, and the rows of a store of Homing.

Where the store keeps users apart by itself, its view is used. Elsewhere whose a record is stands in its metadata, and
the condition on it is part of the filter of both legs.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from homing.embedders.provider import ChoosesModel, EmbeddingProvider
from homing.engine.source import EmbedOnce, FixedModel, Nearest, StoreSource
from homing.errors import InvalidArgument
from homing.langchain import journal
from homing.langchain.filters import Tree, filter_tree
from homing.langchain.options import HybridRetrieverOptions
from homing.records import KeywordMatch, Match, VectorRecord
from homing.stores.filters import wanted
from homing.stores.store import MAX_LIMIT, Measured, MultiUserStore, SearchOptions, Store, Worded, Words
from homing.text.keywords import Containment, extract_keywords
from homing.vectors import Vector

COUNTED = 50
"""Of how many records, the most relevant, the keywords are counted; of more where more are asked for."""

M = TypeVar("M", bound=Match)
Found = tuple[Match, tuple[str, ...]]
"""A record, and the keywords that it contains."""


class UserSource(ABC):
    """An engine `Source` of one query. Rows of other users cannot be reached, whatever the filter says."""

    embeds = True
    waits = True

    def __init__(self, query: str, options: HybridRetrieverOptions, user_id: int | str, collection: str) -> None:
        self.query = query
        self.options = options
        self.user_id = user_id
        self.collection = collection
        self.rows: dict[str, VectorRecord] = {}
        self.held: dict[str, tuple[str, ...]] = {}
        self._ends = time.monotonic() + options.deadline

    @cached_property
    def keywords(self) -> list[str]:
        """At most ten words that stand for the query."""
        return extract_keywords(self.query)

    @property
    def left(self) -> float:
        """Seconds until the deadline; a moment where it has passed, so that nothing waits for ever."""
        return max(0.05, self._ends - time.monotonic())

    @property
    def is_late(self) -> bool:
        """Whether nobody waits for an answer any more."""
        return time.monotonic() > self._ends

    def nearest(self, limit: int) -> Nearest:
        """The vector leg."""
        with journal.span("homing.vector_search") as note:
            found = self.by_vector(limit)
            note(results=len(found.above(self.options.min_similarity).cosines))
            return found

    def words(self, limit: int) -> Words:
        """The keyword leg: the rows with the keywords, as the options rank them; `bm25` is how many each has."""
        with journal.span("homing.keyword_search") as note:
            if not self.keywords:
                journal.no_keywords(self.options, self.query, self.user_id)
                return Words()
            found = self.by_keywords(limit)
            note(results=len(found.found))
            return found

    def read(self, ids: Sequence[str]) -> dict[str, VectorRecord]:
        """The rows that the legs brought."""
        return {one: self.rows[one] for one in ids if one in self.rows}

    def matched(self, record: VectorRecord) -> tuple[str, ...]:
        """The keywords that a row holds."""
        return self.held.get(record.id, ())

    @property
    def pending(self) -> bool:
        """Whether some rows have no vector yet."""
        return False

    def waiting(self, ids: Sequence[str]) -> set[str]:
        """Which of these are still to get a vector."""
        return set()

    @abstractmethod
    def by_vector(self, limit: int) -> Nearest:
        """The rows nearest to the query."""

    @abstractmethod
    def by_keywords(self, limit: int) -> Words:
        """The rows that contain keywords; fills `rows` and `held`."""

    @abstractmethod
    def measure(self, ids: Sequence[str], vector: Vector | None) -> list[Measured]:
        """How near these rows are."""


Place = Callable[[str, HybridRetrieverOptions], UserSource]
"""One user's rows somewhere: gives what answers a query. Raises InvalidArgument for a filter it cannot answer."""


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
        conditions: list[Tree] = [] if user_key is None else [{user_key: {"$eq": user_id}}]
        conditions += [filter_tree(options.filter)] if options.filter else []
        self._narrowed = SearchOptions({"$and": conditions} if conditions else {})
        wanted(self._narrowed)
        models = EmbedOnce(FixedModel(embedder))
        self._store = store
        self._inner = WithRows(query, collection, store, models, self._narrowed.metadata_filter, self._own)
        self.waits = self._inner.waits

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


@dataclass(frozen=True)
class WithRows(StoreSource):
    """The engine's source, whose vector leg brings the records, so that none of them is read afterwards."""

    own: Callable[[Sequence[Match]], list[Match]] = list

    def cosines(self, vector: Vector, limit: int, options: SearchOptions) -> dict[str, float]:
        """The nearest records and how near they are."""
        found = self.own(self.store.search(self.collection, vector, limit, options))
        return {one.id: one.cosine for one in found if one.cosine is not None}


def _is_same(owner: Any, user_id: int | str) -> bool:
    return type(owner) is type(user_id) and bool(owner == user_id)
