"""The seam between search and the engines that hold the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from homing.records import Match, VectorRecord
from homing.vectors import Vector

MAX_LIMIT = 10_000
"""The most matches one search returns."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Narrows a search. Every pair must match.

    A value matches a record's metadata value that is equal to it, type included (`1` is not `"1"` and not `True`); a
    list in the metadata matches when one of its items does. A list as filter value means "any of these".

    `model` is the identity of what made the query vector. Where it is given and the collection's vectors come from
    another one, the search raises ModelMismatch: vectors of two identities are never compared.
    """

    metadata_filter: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """What is in a collection: how many records, how many of them have a vector, and which model made those."""

    name: str
    records: int
    embedded: int
    model: str
    dimensions: int


@runtime_checkable
class Store(Protocol):
    """Keeps records and finds them again, by vector and by keyword.

    Safe to call from several threads, and for engines on disk from several processes. A call that returns is durable; a
    call that raises has changed nothing. An unknown collection has no matches: it is not an error. Raises only
    StoreError and InvalidArgument.
    """

    def upsert(self, records: Iterable[VectorRecord]) -> int:
        """Write records, each replacing the one with its `(collection, id)`; returns how many were written.

        All of one call or none. Of records with one key the last wins. The vectors of a collection come from one model:
        a record whose `model` differs from the collection's is refused with ModelMismatch.
        """

    def search(
        self, collection: str, vector: Vector, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The nearest records, by `distance` ascending, then id; `limit` of them if so many exist."""

    def search_text(
        self, collection: str, query: str, limit: int = 10, options: SearchOptions | None = None
    ) -> list[Match]:
        """The records that share tokens with the query, by relevance descending and then id. The query is data."""

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        """The records that exist, in the order asked for."""

    def ids(self, collection: str) -> list[str]:
        """The ids of every record of a collection, in the order of `records`, without reading the records."""

    def records(self, collection: str) -> Iterator[VectorRecord]:
        """Every record of a collection, by id."""

    def delete(self, collection: str, ids: Sequence[str]) -> int:
        """Remove records everywhere; returns how many there were."""

    def drop(self, collection: str) -> int:
        """Remove a collection with all of its records; returns how many there were."""

    def collections(self) -> list[CollectionInfo]:
        """What is in the store, by name."""

    def check(self) -> list[str]:
        """What is wrong inside the store, a sentence each; nothing where records, vectors and keywords agree."""

    def close(self) -> None:
        """Let go of the engine. A closed store refuses every other call."""


@runtime_checkable
class TellsSizes(Protocol):
    """A store that can say how much room its parts take; beside `Store`, because not every engine knows."""

    def sizes(self) -> Mapping[str, int]:
        """Bytes by what they hold."""
