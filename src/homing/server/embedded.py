"""What has a vector, by source: what a map can be drawn of, without reading more of it than is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from homing.app import Homing
from homing.documents import DocumentService
from homing.documents.records import COLLECTION as DOCUMENTS
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
    wanted = set(app.memory.collections) if source == "memory" else {DOCUMENTS}
    for info in app.store.collections():
        if info.name not in wanted or not info.embedded:
            continue
        if source == "documents" and project is not None:
            yield from _project(app, project, info.model)
        else:
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
        options = SearchOptions(self._narrowed(), model=self.model)
        return [one.id for one in self.store.search_vector(self.name, vector, limit, options)]

    def _narrowed(self) -> Mapping[str, str]:
        return {}

    def _embedded(self, record: VectorRecord, vector: Vector) -> Embedded:
        group = str(record.metadata.get("document", self.name)) if self.source == "documents" else self.name
        return Embedded(record.id, self.source, group, " ".join(record.text.split())[:LABEL], vector)


@dataclass(frozen=True, slots=True)
class _Project(_Collection):
    """The part of a collection that belongs to one project."""

    documents: DocumentService
    project: str

    def ids(self) -> list[str]:
        return self.documents.chunk_ids(self.project)

    def _narrowed(self) -> Mapping[str, str]:
        return {"project": self.project}


def _project(app: Homing, project: str, model: str) -> Iterator[Stretch]:
    for one in app.documents.projects():
        if one.id == project and one.chunks > one.pending:
            yield _Project(app.store, "documents", DOCUMENTS, model, one.chunks - one.pending, app.documents, project)


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
