"""What both places have in common: one query put to one user's rows, with its keywords, its deadline and its spans."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from homing.engine.source import Nearest
from homing.langchain import journal
from homing.langchain.options import HybridRetrieverOptions
from homing.langchain.tracing import span
from homing.records import VectorRecord
from homing.stores.store import Measured, Words
from homing.text.keywords import extract_keywords
from homing.vectors import Vector

Filter = Mapping[str, Any]
"""A condition on the metadata, in LangChain's language of filters."""


class UserSource(ABC):
    """An engine `Source` of one query. Rows of other users cannot be reached, whatever the filter says."""

    embeds = True

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
        with span("homing.vector_search") as noted:
            found = self.by_vector(limit)
            noted.set_attribute("homing.results", len(found.above(self.options.min_similarity).cosines))
            return found

    def words(self, limit: int) -> Words:
        """The keyword leg: the rows with the keywords, as the options rank them; `bm25` is how many each has."""
        with span("homing.keyword_search") as noted:
            if not self.keywords:
                journal.no_keywords(self.options, self.query, self.user_id)
                return Words()
            found = self.by_keywords(limit)
            noted.set_attribute("homing.results", len(found.found))
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
