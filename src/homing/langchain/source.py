"""What the retriever asks of a database: the rows of one user, by vector and by keyword."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from homing.records import Metadata
from homing.vectors import Scale

Filter = Mapping[str, Any]
"""A condition on the metadata, in LangChain's language of filters."""


@dataclass(frozen=True, slots=True)
class Found:
    """One row that a leg has found.

    The vector leg knows its `cosine`. The keyword leg knows how many keywords are in its text (`count`), and which.
    """

    id: str
    text: str
    metadata: Metadata
    cosine: float | None = None
    matched: tuple[str, ...] = ()
    count: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as a vector, and how a cosine with it reads as a similarity."""

    vector: Sequence[float]
    scale: Scale | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """What the keyword leg is asked: a query, its keywords, and whether their number or their relevance ranks."""

    query: str
    keywords: Sequence[str]
    by_relevance: bool = False


class Source(Protocol):
    """The rows of one user in one place.

    Whoever makes one names the user; no call can reach another user's rows, whatever its filter says. The condition on
    the user is part of every statement. Safe to call from several threads.
    """

    @property
    def collection(self) -> str:
        """What the place is called: a table, a collection."""

    def check(self, narrowed: Filter | None) -> None:
        """Raise InvalidArgument for a filter that the place cannot answer."""

    def ask(self, query: str) -> Asked:
        """The query in the space of the rows' vectors. Raises what the embeddings raise."""

    def nearest(self, asked: Asked, limit: int, narrowed: Filter | None, *, deadline: float) -> list[Found]:
        """The rows nearest to a vector, `limit` of them if the user has so many."""

    def matching(self, words: Words, limit: int, narrowed: Filter | None, *, deadline: float) -> list[Found]:
        """The rows that contain keywords, best first, `limit` of them if there are so many."""

    def cosines(self, asked: Asked, ids: Sequence[str], *, deadline: float) -> Mapping[str, float]:
        """How near the rows with these ids are; what has no comparable vector is left out."""
