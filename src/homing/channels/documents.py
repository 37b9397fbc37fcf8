"""Who answers `document:*` and `project:*`."""

from __future__ import annotations

from homing.app import Homing
from homing.channels.document_messages import (
    DocumentChunk,
    DocumentChunksRequest,
    DocumentChunksResponse,
    DocumentDeleteRequest,
    DocumentDeleteResponse,
    DocumentEntry,
    DocumentListRequest,
    DocumentListResponse,
    DocumentMoveRequest,
    DocumentMoveResponse,
    DocumentRenameRequest,
    DocumentRenameResponse,
    DocumentSaveRequest,
    DocumentSaveResponse,
    DocumentTextRequest,
    DocumentTextResponse,
    ProjectDeleteRequest,
    ProjectDeleteResponse,
    ProjectEntry,
    ProjectListRequest,
    ProjectListResponse,
)
from homing.channels.work import Work


def save(app: Homing, request: DocumentSaveRequest, work: Work) -> DocumentSaveResponse:
    """Keep a text; answered when it is on disk and its words can be found."""
    saved = app.documents.save(request.project_id, request.document_id, request.text)
    return DocumentSaveResponse(
        changed=list(saved.changed),
        unchanged=list(saved.unchanged),
        moved=list(saved.moved),
        removed=list(saved.removed),
    )


def delete(app: Homing, request: DocumentDeleteRequest, work: Work) -> DocumentDeleteResponse:
    """Forget a document."""
    return DocumentDeleteResponse(deleted=app.documents.delete(request.project_id, request.document_id))


def rename(app: Homing, request: DocumentRenameRequest, work: Work) -> DocumentRenameResponse:
    """Give a document another name."""
    app.documents.rename(request.project_id, request.document_id, request.new_document_id)
    return DocumentRenameResponse(project_id=request.project_id, document_id=request.new_document_id)


def move(app: Homing, request: DocumentMoveRequest, work: Work) -> DocumentMoveResponse:
    """Take a document to another project."""
    app.documents.move(request.project_id, request.document_id, request.to_project_id)
    return DocumentMoveResponse(project_id=request.to_project_id, document_id=request.document_id)


def listed(app: Homing, request: DocumentListRequest, work: Work) -> DocumentListResponse:
    """The documents of a project."""
    entries = [
        DocumentEntry(
            document_id=one.id,
            project_id=one.project,
            characters=one.characters,
            chunks=one.chunks,
            pending=one.pending,
            updated_at=_milliseconds(one.updated_at),
        )
        for one in app.documents.documents(request.project_id)
    ]
    return DocumentListResponse(documents=entries)


def text(app: Homing, request: DocumentTextRequest, work: Work) -> DocumentTextResponse:
    """The text of a document."""
    return DocumentTextResponse(text=app.documents.text(request.project_id, request.document_id))


def chunks(app: Homing, request: DocumentChunksRequest, work: Work) -> DocumentChunksResponse:
    """The paragraphs of a document."""
    found = app.documents.chunks(
        request.project_id,
        request.document_id,
        embeddings=request.include_embedding,
        offsets=request.offset_unit,
    )
    told = [
        DocumentChunk(
            id=one.id,
            document_id=one.document_id,
            project_id=one.project_id,
            text=one.text,
            embedding=None if one.embedding is None else one.embedding.tolist(),
            start_offset=one.start_offset,
            end_offset=one.end_offset,
            updated_at=_milliseconds(one.updated_at),
            pending=one.pending,
        )
        for one in found
    ]
    return DocumentChunksResponse(chunks=told)


def projects(app: Homing, request: ProjectListRequest, work: Work) -> ProjectListResponse:
    """Every project."""
    entries = [
        ProjectEntry(project_id=one.id, documents=one.documents, chunks=one.chunks, pending=one.pending)
        for one in app.documents.projects()
    ]
    return ProjectListResponse(projects=entries)


def delete_project(app: Homing, request: ProjectDeleteRequest, work: Work) -> ProjectDeleteResponse:
    """Forget a project."""
    return ProjectDeleteResponse(documents=app.documents.delete_project(request.project_id))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
