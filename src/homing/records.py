"""The frozen data that crosses seams."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from homing.vectors import Vector

Metadata = Mapping[str, Any]
"""JSON-like data kept with a record; string keys."""

Mode = Literal["semantic", "hybrid", "keyword"]
Leg = Literal["vector", "keyword"]


def text_hash(text: str) -> str:
    """Names the exact text that was embedded; two texts with one hash are the same text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """What a store keeps; `(collection, id)` is its key.

    `embedding` may be None: the record is then found by keywords only, until somebody embeds it. `model` is the
    identity of what made the embedding (`provider/model@dimensions`); `keywords` is text that the keyword leg reads in
    place of `text`, where the two should differ.
    """

    id: str
    collection: str
    embedding: Vector | None
    metadata: Metadata = field(default_factory=dict)
    text: str = ""
    model: str = ""
    keywords: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """One answer of one leg of a store.

    For a vector search `distance` is `1 - cosine`, ascending. For a keyword search `score` is the engine's relevance,
    descending, comparable only within that one answer, and `distance` is None.
    """

    id: str
    collection: str
    distance: float | None
    metadata: Metadata
    text: str
    score: float | None = None

    @property
    def cosine(self) -> float | None:
        """The raw cosine behind `distance`."""
        return None if self.distance is None else 1 - self.distance


@dataclass(frozen=True, slots=True)
class KeywordMatch(Match):
    """A match that says which keywords it contains; `score` is how many."""

    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LegShare:
    """What one leg says about a hit: its place there, the leg's raw score, and what it brought to the fused score."""

    leg: Leg
    rank: int
    raw: float
    weight: float
    share: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer of a search, with its explanation.

    `score` is the probability that it is about the query (of a search by meaning alone, its cosine on the model's
    readable scale), None where it has no vector; `pending` is whether one is still to come. `fused` orders the hits of
    one search and means nothing outside it.
    """

    id: str
    collection: str
    text: str
    metadata: Metadata
    score: float | None
    cosine: float | None
    fused: float
    legs: tuple[LegShare, ...] = ()
    keywords: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    pending: bool = False

    @property
    def distance(self) -> float | None:
        """`1 - cosine`, where there is one."""
        return None if self.cosine is None else 1 - self.cosine


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for a person, in both languages."""

    zh: str
    en: str

    def __str__(self) -> str:
        return f"{self.zh} / {self.en}"


H = TypeVar("H", covariant=True)


@dataclass(frozen=True, slots=True)
class Found(Sequence[H]):
    """The answer of a search; iterates and indexes like the list of its hits.

    `degraded` is true when a leg failed or was too slow; `reason` is then a stable code (`vector:TIMEOUT`) and `notice`
    says it to a person. `timings` are milliseconds by step. `corrected` are words of the query that no text holds, and
    the spelling that they were read as. `confidence` is the probability that the first hit is right, None where that
    cannot be told; `left_out` is how many weaker hits were found and cut.
    """

    hits: tuple[H, ...]
    mode: Mode
    degraded: bool = False
    reason: str | None = None
    notice: Notice | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    corrected: Mapping[str, str] = field(default_factory=dict)
    confidence: float | None = None
    left_out: int = 0

    def __iter__(self) -> Iterator[H]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: Any) -> Any:
        return self.hits[index]


@dataclass(frozen=True, slots=True)
class Retrieved(Found[Hit]):
    """The answer of every search for texts."""

    def with_hits(self, hits: Sequence[Hit]) -> Retrieved:
        """The same answer with other hits: what a capability does after re-ranking or resolving."""
        return replace(self, hits=tuple(hits))
