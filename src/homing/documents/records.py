"""What documents are made of, as callers see it and as records of the engine."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal

from homing.documents import archive
from homing.documents.archive import Row
from homing.documents.layout import WINDOWS, Stored, embedded_text
from homing.engine import Engine
from homing.engine.work_state import WorkState
from homing.files import FileText
from homing.records import Metadata, VectorRecord
from homing.stores.store import MultiUserStore, Store
from homing.vectors import Vector

DocumentKind = Literal["text", "upload", "file"]
FOLDER = "folder "
"""What the name of a project begins with that follows a folder."""
COLLECTION = "paragraphs"
"""The one collection of all projects, so that a search over everything does not grow with their number."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """Whose documents they are, and the collection that their chunks are in. The folder's own have no owner's name."""

    owner: str = ""
    collection: str = COLLECTION


def followed_folder(project: str) -> str:
    """The folder that a project follows; empty where it follows none."""
    return project.removeprefix(FOLDER) if project.startswith(FOLDER) else ""


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
    about = SourceFile.read(row.about) if row.cut == WINDOWS else None
    for order, one in enumerate(stored.placed()):
        place = None
        if about is not None:
            part = about.part_at(one.start)
            place = {"fileName": row.id, "part": part, "chunk": order, "start": one.start, "end": one.end}
        yield record_of(row, collection, one.number, stored.text[one.start : one.end], place)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A paragraph of a document: `text == document_text[start_offset:end_offset]`.

    Its id stays while it is edited or moved. Offsets count characters (code points), or UTF-16 units where those were
    asked for. `pending` is whether its vector is still to come; until then keywords find it. `embedding` is there only
    where it was asked for.
    """

    id: str
    document_id: str
    project_id: str
    text: str
    start_offset: int
    end_offset: int
    updated_at: float
    pending: bool
    embedding: Vector | None = None


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document: how long it is, how many chunks it has, and how many of those wait for their vector.

    `kind` is what it came from: a text that was saved, a file that was uploaded, or one in a folder that is followed.
    `format` is that of an uploaded file.
    """

    id: str
    project: str
    characters: int
    chunks: int
    pending: int
    updated_at: float
    kind: DocumentKind = "text"
    format: str = ""


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """A project: how many documents and chunks it has, and how many chunks wait for their vector.

    `follows` is the folder whose files are its documents; empty for a project of its own.
    """

    id: str
    documents: int
    chunks: int
    pending: int

    @property
    def follows(self) -> str:
        """The folder it follows."""
        return followed_folder(self.id)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The format of a file, when it was uploaded, and where its pages, sheets or chapters begin in the text.

    A document that was not uploaded has none of these.
    """

    format: str = ""
    uploaded_at: float = 0.0
    parts: tuple[tuple[int, str], ...] = ()

    @staticmethod
    def of(read: FileText, uploaded_at: float) -> SourceFile:
        """What is to be known of a file that was just read."""
        return SourceFile(read.format, uploaded_at, tuple((part.start, part.name) for part in read.parts))

    @staticmethod
    def read(kept: str) -> SourceFile:
        """As it was kept."""
        fields = json.loads(kept)
        return SourceFile(**{**fields, "parts": tuple((start, name) for start, name in fields.get("parts", ()))})

    def keep(self) -> str:
        """As it is kept."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def edited(self) -> SourceFile:
        """What is still true after somebody has changed the text: its pages are no longer where they were."""
        return replace(self, parts=())

    def part_at(self, offset: int) -> str:
        """The name of the page, sheet or chapter that a character stands in; empty where there are none."""
        at = bisect_right(self.parts, offset, key=lambda part: part[0]) - 1
        return self.parts[at][1] if at >= 0 else ""


def everybody(store: Store) -> Iterator[tuple[Store, Namespace]]:
    """Where the documents of each owner are, those of the folder first: a store that reaches them, and their namespace.

    Makes no tables.
    """
    yield store, Namespace()
    database = store.database
    if database is None:
        return
    if isinstance(store, MultiUserStore):
        for user in WorkState(database, "").users() if database.applied("work") else ():
            yield store.for_user(user), Namespace(user)
    elif database.applied(archive.COMPONENT):
        for user in database.read(archive.owners):
            if user:
                yield store, Namespace(user, f"{COLLECTION}:{user}")
