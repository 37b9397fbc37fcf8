"""What has a vector, by source: what a map can be drawn of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from homing.app import Homing
from homing.documents.archive import collection_of
from homing.errors import HomingError
from homing.vectors import Vector

MapSource = Literal["skills", "documents", "memory"]
SOURCES: tuple[MapSource, ...] = ("skills", "documents", "memory")
READ_AT_MOST = 20_000
"""Records of one collection that are looked at: a map of more would show no more, and take long."""
LABEL = 80


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector and what a map says about it; `group` is the document, the kind of memory, or empty."""

    id: str
    source: MapSource
    group: str
    label: str
    vector: Vector
    model: str


def embedded(app: Homing, source: MapSource, project: str | None = None) -> Iterator[Embedded]:
    """What of a source has a vector, by id; of documents only those of `project`, where one is named."""
    if source == "skills":
        yield from _skills(app)
    elif source == "memory":
        for collection in app.rag.collections:
            yield from _stored(app, source, collection)
    else:
        for one in app.documents.projects():
            if project in (None, one.id):
                yield from _stored(app, source, collection_of(one.id))


def _skills(app: Homing) -> Iterator[Embedded]:
    try:
        records = app.skills.records()
    except HomingError:
        # Skills live in a store of their own, which may not be installed; the rest can be drawn all the same.
        return
    for record in islice(records, READ_AT_MOST):
        if record.embedding is not None:
            name = str(record.metadata.get("name", record.id))
            yield Embedded(record.id, "skills", "", name[:LABEL], record.embedding, record.model)


def _stored(app: Homing, source: MapSource, collection: str) -> Iterator[Embedded]:
    for record in islice(app.store.records(collection), READ_AT_MOST):
        if record.embedding is not None:
            group = str(record.metadata.get("document", collection)) if source == "documents" else collection
            label = " ".join(record.text.split())[:LABEL]
            yield Embedded(record.id, source, group, label, record.embedding, record.model)
