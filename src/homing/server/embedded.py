"""What has a vector, by source: what a map can be drawn of, without reading more of it than is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from homing.app import Homing
from homing.documents.archive import collection_of
from homing.errors import HomingError
from homing.records import VectorRecord
from homing.stores.store import SearchOptions, Store
from homing.vectors import Vector

MapSource = Literal["skills", "documents", "memory"]
SOURCES: tuple[MapSource, ...] = ("skills", "documents", "memory")
LABEL = 80


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector and what a map says about it; `group` is the document, the kind of memory, or empty."""

    id: str
    source: MapSource
    group: str
    label: str
    vector: Vector


class Stretch(Protocol):
    """A part of what the map can show: `count` vectors that one model made."""

    @property
    def model(self) -> str: ...

    @property
    def count(self) -> int: ...

    def ids(self) -> list[str]:
        """What lies in it, in an order that stays; what has no vector yet may be among it."""

    def some(self, ids: Sequence[str]) -> list[Embedded]:
        """Those of them that have a vector, in that order."""

    def nearest(self, vector: Vector, limit: int) -> list[str]:
        """The ids of what is nearest to a vector of the same model."""


def stretches(app: Homing, source: MapSource, project: str | None = None) -> Iterator[Stretch]:
    """What of a source has vectors; of documents only those of `project`, where one is named."""
    if source == "skills":
        yield from _skills(app)
        return
    if source == "memory":
        wanted = set(app.memory.collections)
    else:
        wanted = {collection_of(one.id) for one in app.documents.projects() if project in (None, one.id)}
    for info in app.store.collections():
        if info.name in wanted and info.embedded:
            yield _Collection(app.store, source, info.name, info.model, info.embedded)


@dataclass(frozen=True, slots=True)
class _Collection:
    store: Store
    source: MapSource
    name: str
    model: str
    count: int

    def ids(self) -> list[str]:
        return self.store.ids(self.name)

    def some(self, ids: Sequence[str]) -> list[Embedded]:
        # A vector of another model is one that came after the model was looked up.
        found = (one for one in self.store.get(self.name, ids) if one.model == self.model)
        return [self._embedded(one, one.embedding) for one in found if one.embedding is not None]

    def nearest(self, vector: Vector, limit: int) -> list[str]:
        return [one.id for one in self.store.search(self.name, vector, limit, SearchOptions(model=self.model))]

    def _embedded(self, record: VectorRecord, vector: Vector) -> Embedded:
        group = str(record.metadata.get("document", self.name)) if self.source == "documents" else self.name
        return Embedded(record.id, self.source, group, " ".join(record.text.split())[:LABEL], vector)


def _skills(app: Homing) -> Iterator[Stretch]:
    try:
        records = {one.id: one for one in app.skills.records() if one.embedding is not None}
    except HomingError:
        # Skills live in a store of their own, which may not be installed; the rest can be drawn all the same.
        return
    if records:
        yield _Skills(records, next(iter(records.values())).model)


@dataclass(frozen=True, slots=True)
class _Skills:
    """All skills are in memory already: they are searched there."""

    records: dict[str, VectorRecord]
    model: str

    @property
    def count(self) -> int:
        return len(self.records)

    def ids(self) -> list[str]:
        return list(self.records)

    def some(self, ids: Sequence[str]) -> list[Embedded]:
        return [
            Embedded(one.id, "skills", "", str(one.metadata.get("name", one.id))[:LABEL], one.embedding)
            for one in (self.records[name] for name in ids)
            if one.embedding is not None
        ]

    def nearest(self, vector: Vector, limit: int) -> list[str]:
        near = sorted((-float(one.vector @ vector), one.id) for one in self.some(self.ids()))
        return [name for _, name in near[:limit]]
