"""What has a vector, by source: what a map can be drawn of, without reading more of it than is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from homing.app import Homing
from homing.documents import DocumentService
from homing.documents.records import COLLECTION as DOCUMENTS
from homing.records import VectorRecord
from homing.skills.index import HEADS
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


def stretches(app: Homing, source: MapSource, project: str | None = None) -> Iterator[Stretch]:
    """What of a source has vectors; of documents only those of `project`, where one is named."""
    # The skills of a server are in its own store, whoever asks.
    store = app.skills.engine.store if source == "skills" else app.store
    wanted = {"skills": (HEADS,), "documents": (DOCUMENTS,), "memory": app.memory.collections}[source]
    for info in store.collections():
        if info.name not in wanted or not info.embedded:
            continue
        if source == "documents" and project is not None:
            yield from _project(app, project, info.model)
        else:
            yield Stretch(store, source, info.name, info.model, info.embedded)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of what the map can show: `count` vectors that one model made."""

    store: Store
    source: MapSource
    name: str
    model: str
    count: int

    def ids(self) -> list[str]:
        """What lies in it, in an order that stays; what has no vector yet may be among it."""
        return self.store.ids(self.name)

    def some(self, ids: Sequence[str]) -> list[Embedded]:
        """Those of them that have a vector, in that order."""
        # A vector of another model is one that came after the model was looked up.
        found = (one for one in self.store.get(self.name, ids) if one.model == self.model)
        return [self._embedded(one, one.embedding) for one in found if one.embedding is not None]

    def nearest(self, vector: Vector, limit: int) -> list[str]:
        """The ids of what is nearest to a vector of the same model."""
        options = SearchOptions(self._narrowed(), model=self.model)
        return [one.id for one in self.store.search_vector(self.name, vector, limit, options)]

    def _narrowed(self) -> Mapping[str, str]:
        return {}

    def _embedded(self, record: VectorRecord, vector: Vector) -> Embedded:
        if self.source == "skills":
            return Embedded(record.id, "skills", "", str(record.metadata.get("name", record.id))[:LABEL], vector)
        group = str(record.metadata.get("document", self.name)) if self.source == "documents" else self.name
        return Embedded(record.id, self.source, group, " ".join(record.text.split())[:LABEL], vector)


@dataclass(frozen=True, slots=True)
class _Project(Stretch):
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
