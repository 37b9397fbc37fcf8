"""`/documents`: projects of documents, searched by paragraph while they are being written."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi import Query as Parameter
from pydantic import Field

from homing.channels.problems import NO_NUL, ONE_PART
from homing.errors import NotFound
from homing.records import Mode
from homing.server.access import Reading, Writing
from homing.server.body import Answer, Body, Query
from homing.server.found import FoundGroup, group_of
from homing.server.jobs import Report
from homing.server.routes.jobs import JobTold, told

router = APIRouter(prefix="/documents", tags=["documents"])

LONGEST_NAME = 512
"""Characters of a name, here and on the channels."""

Project = Annotated[str, Path(min_length=1, max_length=LONGEST_NAME, pattern=ONE_PART, examples=["novel"])]
Document = Annotated[str, Path(min_length=1, max_length=LONGEST_NAME, pattern=NO_NUL, examples=["ch1"])]


class ProjectTold(Answer):
    """A project; `pending` chunks wait for their vector and are found by their words."""

    id: str = Field(examples=["novel"])
    documents: int
    chunks: int
    pending: int


class ProjectList(Answer):
    """The projects, by name."""

    projects: list[ProjectTold]


class DocumentTold(Answer):
    """A document without its text."""

    id: str = Field(examples=["ch1"])
    project: str = Field(examples=["novel"])
    characters: int
    chunks: int
    pending: int
    updated_at: float


class DocumentList(Answer):
    """The documents of a project, by name."""

    documents: list[DocumentTold]


class DocumentText(Body):
    """The text of a document, whole."""

    text: Annotated[str, Field(max_length=10_000_000, examples=["他一个人守着灯塔。\n\n海很安静。"])]


class DocumentWhole(Answer):
    """A document as it was last saved."""

    project: str
    id: str
    text: str


class DocumentSaved(Answer):
    """What a save did to the paragraphs, as chunk ids; only `changed` ones are embedded."""

    changed: list[str]
    unchanged: list[str]
    moved: list[str]
    removed: list[str]


class ChunkTold(Answer):
    """A paragraph: `text` is what stands between the two offsets, which count characters."""

    id: str
    text: str
    start_offset: int
    end_offset: int
    updated_at: float
    pending: bool


class ChunkList(Answer):
    """The paragraphs of a document, in order."""

    chunks: list[ChunkTold]


class Deleted(Answer):
    """How many documents are gone."""

    deleted: int


class DocumentSearch(Body):
    """A question to the documents of a project."""

    query: Query = Field(examples=["孤独的感觉"])
    mode: Mode = Field("hybrid", examples=["semantic"])
    limit: int = Field(20, ge=1, le=100)
    offset: int = Field(0, ge=0, le=1_000)
    min_score: float | None = Field(0.55, ge=0, le=1, description="For hits by meaning; null is no threshold.")
    document: str | None = Field(None, min_length=1, max_length=LONGEST_NAME, pattern=NO_NUL)


@router.get("")
def list_projects(caller: Reading) -> ProjectList:
    """The projects."""
    return ProjectList(
        projects=[
            ProjectTold(id=one.id, documents=one.documents, chunks=one.chunks, pending=one.pending)
            for one in caller.app.documents.projects()
        ]
    )


@router.get("/{project}")
def list_documents(
    project: Project,
    caller: Reading,
    limit: Annotated[int, Parameter(ge=1, le=10_000)] = 1_000,
    offset: Annotated[int, Parameter(ge=0, le=1_000_000)] = 0,
) -> DocumentList:
    """The documents of a project; none where there is no such project."""
    found = caller.app.documents.documents(project)
    return DocumentList(
        documents=[
            DocumentTold(
                id=one.id,
                project=one.project,
                characters=one.characters,
                chunks=one.chunks,
                pending=one.pending,
                updated_at=one.updated_at,
            )
            for one in found[offset : offset + limit]
        ]
    )


@router.delete("/{project}")
def delete_project(project: Project, caller: Writing) -> Deleted:
    """Delete a project with everything in it."""
    return Deleted(deleted=caller.app.documents.delete_project(project))


@router.post("/{project}/search")
def search_documents(project: Project, body: DocumentSearch, caller: Reading) -> FoundGroup:
    """The paragraphs that a question is about. When the model cannot answer, keywords do, and the answer says so."""
    caller.service.log_query(body.query)
    found = caller.app.documents.search(
        project,
        body.query,
        mode=body.mode,
        top_k=body.limit,
        min_score=body.min_score,
        offset=body.offset,
        document=body.document,
    )
    return caller.service.metrics.searched(group_of("documents", body.query, found))


@router.post("/{project}/reindex", status_code=202)
def reindex_documents(project: Project, caller: Writing) -> JobTold:
    """Find paragraphs whose vector is missing, out of date or damaged, and embed those, by a job."""
    documents = caller.app.documents
    if all(one.id != project for one in documents.projects()):
        raise NotFound(f"there is no project {project!r}; GET /documents lists them")

    def work(report: Report) -> dict[str, Any]:
        # The folder of the user stays open for as long as the job lasts.
        with caller.service.tenants.lease(caller.user) as app:
            return asdict(app.documents.reindex(project, progress=report))

    return told(caller.service.jobs.submit("reindex", project, work, user=caller.user, shared=False).view)


@router.get("/{project}/{document:name}/chunks")
def list_chunks(project: Project, document: Document, caller: Reading) -> ChunkList:
    """The paragraphs of a document, and which of them wait for their vector."""
    return ChunkList(
        chunks=[
            ChunkTold(
                id=one.id,
                text=one.text,
                start_offset=one.start_offset,
                end_offset=one.end_offset,
                updated_at=one.updated_at,
                pending=one.pending,
            )
            for one in caller.app.documents.chunks(project, document)
        ]
    )


@router.put("/{project}/{document:name}")
def save_document(project: Project, document: Document, body: DocumentText, caller: Writing) -> DocumentSaved:
    """Save a document. It is on disk and found by its words when this answers; new paragraphs are embedded after."""
    saved = caller.app.documents.save(project, document, body.text)
    return DocumentSaved(
        changed=list(saved.changed),
        unchanged=list(saved.unchanged),
        moved=list(saved.moved),
        removed=list(saved.removed),
    )


@router.get("/{project}/{document:name}")
def get_document(project: Project, document: Document, caller: Reading) -> DocumentWhole:
    """A document with its text."""
    return DocumentWhole(project=project, id=document, text=caller.app.documents.text(project, document))


@router.delete("/{project}/{document:name}")
def delete_document(project: Project, document: Document, caller: Writing) -> Deleted:
    """Delete a document with everything that was made of it."""
    if not caller.app.documents.delete(project, document):
        raise NotFound(f"there is no document {document!r} in project {project!r}")
    return Deleted(deleted=1)
