"""What documents are made of, as callers see it."""

from __future__ import annotations

from dataclasses import dataclass

from homing.vectors import Vector


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
    """A document: how long it is, how many chunks it has, and how many of those wait for their vector."""

    id: str
    project: str
    characters: int
    chunks: int
    pending: int
    updated_at: float


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """A project: how many documents and chunks it has, and how many chunks wait for their vector."""

    id: str
    documents: int
    chunks: int
    pending: int
