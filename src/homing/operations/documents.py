"""Projects of documents, searched by paragraph while they are being written."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from homing.errors import NotFound
from homing.operations.hits import SearchOut, search_out
from homing.operations.models import MAX_NAME, Document, Input, Nothing, Output, Project, Query
from homing.operations.operation import Call, Job, operation
from homing.operations.problems import NO_NUL
from homing.records import Mode

TAG = "documents"


class ProjectOut(Output):
    """A project; `pending` chunks wait for their vector and are found by their words."""

    id: str = Field(examples=["novel"])
    documents: int
    chunks: int
    pending: int


class ProjectList(Output):
    """The projects, by name."""

    projects: list[ProjectOut]


class DocumentOut(Output):
    """A document without its text."""

    id: str = Field(examples=["ch1"])
    project: str = Field(examples=["novel"])
    characters: int
    chunks: int
    pending: int
    updated_at: float


class DocumentList(Output):
    """The documents of a project, by name."""

    documents: list[DocumentOut]


class DocumentText(Output):
    """A document as it was last saved."""

    project: str
    id: str
    text: str


class DocumentSaved(Output):
    """What a save did to the paragraphs, as chunk ids; only `changed` ones are embedded."""

    changed: list[str]
    unchanged: list[str]
    moved: list[str]
    removed: list[str]


class ChunkOut(Output):
    """A paragraph: `text` is what stands between the two offsets, which count characters."""

    id: str
    text: str
    start_offset: int
    end_offset: int
    updated_at: float
    pending: bool


class ChunkList(Output):
    """The paragraphs of a document, in order."""

    chunks: list[ChunkOut]


class Deleted(Output):
    """How many documents are gone."""

    deleted: int


class ReindexOut(Output):
    """What a reindex did: chunks that got a vector, damaged ones among them, entries of no chunk, and what waits."""

    documents: int
    chunks: int
    embedded: int
    repaired: int
    removed: int
    waiting: int
    canceled: bool


class OfProject(Input):
    """A project."""

    project: Project


class OfDocument(OfProject):
    """A document of a project."""

    document: Document


class DocumentListing(OfProject):
    """A page of the documents of a project."""

    limit: int = Field(1_000, ge=1, le=10_000)
    offset: int = Field(0, ge=0, le=1_000_000)


class DocumentSave(OfDocument):
    """The text of a document, whole."""

    text: Annotated[str, Field(max_length=10_000_000, examples=["他一个人守着灯塔。\n\n海很安静。"])]


class DocumentRename(OfDocument):
    """The new name of a document."""

    name: Document = Field(examples=["ch2"])


class DocumentMove(OfDocument):
    """The project that a document goes to."""

    to: Project = Field(examples=["archive"])


class DocumentSearch(OfProject):
    """A question to the documents of a project."""

    query: Query = Field(examples=["孤独的感觉"])
    mode: Mode = Field("hybrid", examples=["semantic"])
    limit: int = Field(20, ge=1, le=100)
    offset: int = Field(0, ge=0, le=1_000)
    min_score: float | None = Field(0.55, ge=0, le=1, description="For hits by meaning; null is no threshold.")
    document: str | None = Field(None, min_length=1, max_length=MAX_NAME, pattern=NO_NUL)


@operation("read", http="GET /documents", tag=TAG)
def list_projects(call: Call, asked: Nothing) -> ProjectList:
    """The projects."""
    return ProjectList(projects=[ProjectOut.of(one) for one in call.app.documents.projects()])


@operation("read", http="GET /documents/{project}", tag=TAG)
def list_documents(call: Call, asked: DocumentListing) -> DocumentList:
    """The documents of a project; none where there is no such project."""
    found = call.app.documents.documents(asked.project)
    return DocumentList(documents=[DocumentOut.of(one) for one in found[asked.offset : asked.offset + asked.limit]])


@operation("write", http="DELETE /documents/{project}", tag=TAG)
def delete_project(call: Call, asked: OfProject) -> Deleted:
    """Delete a project with everything in it."""
    return Deleted(deleted=call.app.documents.delete_project(asked.project))


@operation("read", http="POST /documents/{project}/search", tag=TAG)
def search_documents(call: Call, asked: DocumentSearch) -> SearchOut:
    """The paragraphs that a question is about. When the model cannot answer, keywords do, and the answer says so."""
    found = call.app.documents.search(
        asked.project,
        asked.query,
        mode=asked.mode,
        top_k=asked.limit,
        min_score=asked.min_score,
        offset=asked.offset,
        document=asked.document,
    )
    return search_out("documents", asked.query, found)


def _check_project(call: Call, asked: OfProject) -> None:
    if all(one.id != asked.project for one in call.app.documents.projects()):
        raise NotFound(f"there is no project {asked.project!r}; GET /documents lists them")


@operation(
    "write",
    http="POST /documents/{project}/reindex",
    tag=TAG,
    job=Job("reindex", lambda asked: asked.project, check=_check_project),
)
def reindex_documents(call: Call, asked: OfProject) -> ReindexOut:
    """Find paragraphs whose vector is missing, out of date or damaged, and embed those, by a job."""
    return ReindexOut.of(call.app.documents.reindex(asked.project, progress=call.report))


@operation("read", http="GET /documents/{project}/{document:name}/chunks", tag=TAG)
def list_chunks(call: Call, asked: OfDocument) -> ChunkList:
    """The paragraphs of a document, and which of them wait for their vector."""
    return ChunkList(chunks=[ChunkOut.of(one) for one in call.app.documents.chunks(asked.project, asked.document)])


@operation("write", http="POST /documents/{project}/{document:name}/rename", tag=TAG)
def rename_document(call: Call, asked: DocumentRename) -> DocumentText:
    """Give a document another name. Its paragraphs keep their ids, and nothing is embedded again."""
    call.app.documents.rename(asked.project, asked.document, asked.name)
    return _text(call, asked.project, asked.name)


@operation("write", http="POST /documents/{project}/{document:name}/move", tag=TAG)
def move_document(call: Call, asked: DocumentMove) -> DocumentText:
    """Take a document to another project. Its paragraphs keep their ids, and nothing is embedded again."""
    call.app.documents.move(asked.project, asked.document, asked.to)
    return _text(call, asked.to, asked.document)


@operation("write", http="PUT /documents/{project}/{document:name}", tag=TAG)
def save_document(call: Call, asked: DocumentSave) -> DocumentSaved:
    """Save a document. It is on disk and found by its words when this answers; new paragraphs are embedded after."""
    return DocumentSaved.of(call.app.documents.save(asked.project, asked.document, asked.text))


@operation("read", http="GET /documents/{project}/{document:name}", tag=TAG)
def get_document(call: Call, asked: OfDocument) -> DocumentText:
    """A document with its text."""
    return _text(call, asked.project, asked.document)


@operation("write", http="DELETE /documents/{project}/{document:name}", tag=TAG)
def delete_document(call: Call, asked: OfDocument) -> Deleted:
    """Delete a document with everything that was made of it."""
    if not call.app.documents.delete(asked.project, asked.document):
        raise NotFound(f"there is no document {asked.document!r} in project {asked.project!r}")
    return Deleted(deleted=1)


def _text(call: Call, project: str, document: str) -> DocumentText:
    return DocumentText(project=project, id=document, text=call.app.documents.text(project, document))
