"""A chunk as a record of the engine: its text, and the project and document that it is searched by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from homing.documents.about import About
from homing.documents.archive import Row
from homing.documents.layout import Stored
from homing.documents.splitting import WINDOWS, embedded_text
from homing.engine import Engine
from homing.records import Metadata, VectorRecord

COLLECTION = "paragraphs"
"""The one collection of all projects, so that a search over everything does not grow with their number."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """Whose documents they are, and the collection that their chunks are in. The folder's own have no owner's name."""

    owner: str = ""
    collection: str = COLLECTION


def namespace_of(engine: Engine, owner: str | None) -> Namespace:
    """Where the documents of an owner are; without one, those of the engine's user.

    In a store that does not keep users apart, everybody else has a collection of their own. The name comes last in it,
    so that none can be made to end in another's.
    """
    if owner is None or owner == engine.user:
        return Namespace(engine.user)
    return Namespace(owner, f"{COLLECTION}:{owner}")


def record_of(row: Row, collection: str, number: int, text: str, place: Metadata | None = None) -> VectorRecord:
    """The record of one chunk, without a vector."""
    metadata = {"project": row.project, "document": row.id, **(place or {})}
    return VectorRecord(row.chunk_id(number), collection, None, metadata, embedded_text(text))


def records_of(row: Row, stored: Stored, collection: str) -> Iterator[VectorRecord]:
    """The records of a document, in its order. Windows of a file also say where in it they stand."""
    about = About.read(row.about) if row.cut == WINDOWS else None
    for order, one in enumerate(stored.placed()):
        place = None
        if about is not None:
            part = about.part_at(one.start)
            place = {"fileName": row.id, "part": part, "chunk": order, "start": one.start, "end": one.end}
        yield record_of(row, collection, one.number, stored.text[one.start : one.end], place)
