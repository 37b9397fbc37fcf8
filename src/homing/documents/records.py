"""Documents as callers see them, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from homing.documents import archive
from homing.engine import Engine
from homing.engine.work_state import WorkState
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
