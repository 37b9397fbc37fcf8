"""Requests and responses of `document:*` and `project:*`."""

from __future__ import annotations

from pydantic import Field

from homing.channels.message import Name, OffsetUnit, Request, Response


class DocumentSaveRequest(Request):
    """Keep a document as it is now; an editor sends this at every autosave."""

    project_id: Name
    document_id: Name
    text: str


class DocumentSaveResponse(Response):
    """What became of its paragraphs, as chunk ids. Only the changed ones are embedded, in the background."""

    changed: list[str]
    unchanged: list[str]
    moved: list[str]
    removed: list[str]


class DocumentDeleteRequest(Request):
    """Forget a document with its paragraphs and vectors. Deleting what is not there is fine."""

    project_id: Name
    document_id: Name


class DocumentDeleteResponse(Response):
    """What became of it."""

    deleted: bool = Field(description="Whether there was one.")


class DocumentRenameRequest(Request):
    """Give a document another name. Its chunks keep their ids, and nothing is embedded again."""

    project_id: Name
    document_id: Name
    new_document_id: Name


class DocumentRenameResponse(Response):
    """Where it is now."""

    project_id: str
    document_id: str


class DocumentMoveRequest(Request):
    """Take a document to another project, under its name. Its chunks keep their ids; nothing is embedded again."""

    project_id: Name
    document_id: Name
    to_project_id: Name


class DocumentMoveResponse(Response):
    """Where it is now."""

    project_id: str
    document_id: str


class DocumentListRequest(Request):
    """Ask which documents a project has."""

    project_id: Name


class DocumentEntry(Response):
    """A document."""

    document_id: str
    project_id: str
    characters: int
    chunks: int
    pending: int = Field(description="How many paragraphs wait for their embedding.")
    updated_at: int = Field(description="Milliseconds since 1970, as Date.now() counts.")


class DocumentListResponse(Response):
    """The documents by id. A project that does not exist has none."""

    documents: list[DocumentEntry]


class DocumentTextRequest(Request):
    """Ask for the text of a document."""

    project_id: Name
    document_id: Name


class DocumentTextResponse(Response):
    """The text, as it was saved."""

    text: str


class DocumentChunksRequest(Request):
    """Ask for the paragraphs of a document."""

    project_id: Name
    document_id: Name
    include_embedding: bool = False
    offset_unit: OffsetUnit = "characters"


class DocumentChunk(Response):
    """A paragraph: `text` is `document.slice(startOffset, endOffset)`."""

    id: str
    document_id: str
    project_id: str
    text: str
    embedding: list[float] | None = Field(description="null while it is pending, or where it was not asked for.")
    start_offset: int
    end_offset: int
    updated_at: int = Field(description="Milliseconds since 1970, as Date.now() counts.")
    pending: bool


class DocumentChunksResponse(Response):
    """The paragraphs in the order of the text."""

    chunks: list[DocumentChunk]


class ProjectListRequest(Request):
    """Ask which projects there are."""


class ProjectEntry(Response):
    """A project."""

    project_id: str
    documents: int
    chunks: int
    pending: int = Field(description="How many paragraphs wait for their embedding.")


class ProjectListResponse(Response):
    """The projects by id."""

    projects: list[ProjectEntry]


class ProjectDeleteRequest(Request):
    """Forget a project with all its documents."""

    project_id: Name


class ProjectDeleteResponse(Response):
    """What became of it."""

    documents: int = Field(description="How many documents it had.")
