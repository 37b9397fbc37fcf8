"""Projects of documents, searched by paragraph while they are being written."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from homing.documents.records import DocumentKind
from homing.documents.writing import missing
from homing.engine.search import cut
from homing.errors import InvalidArgument, NotFound
from homing.operations.hits import SearchOut, search_out
from homing.operations.models import Document, Input, Nothing, OffsetUnit, Output, Project, Query, Weaker, on_channels
from homing.operations.operation import Call, Channel, Job, Tool, operation
from homing.records import Mode

TAG = "documents"


def by_project(asked: Any) -> str:
    """The lane of what concerns the documents of a project."""
    return f"project {asked.project}"


class ProjectOut(Output):
    """A project; `pending` chunks wait for their vector and are found by their words.

    `follows` is the folder whose files are its documents; empty for most.
    """

    channel_names = on_channels(id="projectId")

    id: str = Field(examples=["novel"])
    documents: int
    chunks: int
    pending: int
    follows: str = Field(examples=[""])


class ProjectList(Output):
    """The projects, by name."""

    projects: list[ProjectOut]


class DocumentOut(Output):
    """A document without its text."""

    channel_names = on_channels(id="documentId")

    id: str = Field(examples=["ch1"])
    project: str = Field(examples=["novel"])
    characters: int
    chunks: int
    pending: int
    updated_at: float
    kind: DocumentKind = Field(description="A text that was saved, an uploaded file, or a file of a followed folder.")
    format: str = Field(description="Of an uploaded file.", examples=["pdf"])


class DocumentList(Output):
    """The documents of a project, by name."""

    agents_read = "documents"

    documents: list[DocumentOut]


class DocumentPlace(Output):
    """Where a document is now."""

    channel_names = on_channels(id="documentId")

    project: str
    id: str


class PartOut(Output):
    """A page, a sheet or a chapter of an uploaded file, and the character that it begins at."""

    name: str = Field(examples=["3"])
    start: int


class DocumentText(DocumentPlace):
    """A document as it was last saved; `parts` are the pages of a file that was uploaded and not edited since."""

    agents_read = "text"

    text: str
    parts: list[PartOut]


class DocumentSaved(Output):
    """What a save did to the paragraphs, as chunk ids; only `changed` ones are embedded."""

    changed: list[str]
    unchanged: list[str]
    moved: list[str]
    removed: list[str]


class ChunkOut(Output):
    """A paragraph: `text` is what stands between the two offsets. `embedding` is there where it was asked for."""

    id: str
    document_id: str
    project_id: str
    text: str
    embedding: list[float] | None
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


class ProjectDeleted(Deleted):
    """How many documents the project had."""

    channel_names = on_channels(deleted="documents")


class ReindexOut(Output):
    """What a reindex did: chunks that got a vector, damaged ones among them, entries of no chunk, and what waits."""

    channel_names = on_channels(waiting="pending")

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

    limit: int = Field(10_000, ge=1, le=10_000)
    offset: int = Field(0, ge=0, le=1_000_000)


class DocumentSave(OfDocument):
    """The text of a document, whole."""

    # Without a length that is checked: half of a surrogate pair would be refused, and editors save such texts.
    text: str = Field(examples=["他一个人守着灯塔。\n\n海很安静。"])


class ChunkListing(OfDocument):
    """A document, and how its paragraphs are to be told."""

    include_embedding: bool = False
    offset_unit: OffsetUnit = "characters"


class Reindex(Input):
    """What to look through: a document, a project, or everything."""

    # No type says that a document is named with its project; over HTTP the path has it.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"documentId": {"type": "string"}}, "required": ["documentId"]},
            "then": {"properties": {"projectId": {"type": "string"}}, "required": ["projectId"]},
        }
    )

    project: Project | None = Field(None, description="null: every project.")
    document: Document | None = Field(None, description="null: every document of the project.")
    batch_size: int = Field(128, ge=1, le=4096, description="How many paragraphs are embedded at once.", examples=[128])


class DocumentRename(OfDocument):
    """The new name of a document."""

    channel_names = on_channels(name="newDocumentId")

    name: Document = Field(examples=["ch2"])


class DocumentMove(OfDocument):
    """The project that a document goes to."""

    channel_names = on_channels(to="toProjectId")

    to: Project = Field(examples=["archive"])


class DocumentSearch(Input):
    """A question to the documents of a project, or of all projects."""

    project: Project | None = Field(None, description="Only this project; null is all of them.")
    query: Query = Field(examples=["孤独的感觉"])
    mode: Mode = Field("hybrid", description="By meaning, by words, or hybrid: by both.", examples=["semantic"])
    limit: int = Field(20, ge=1, le=100)
    offset: int = Field(0, ge=0, le=1_000)
    min_score: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Leave out what only its meaning found and what scores less, in place of the default cut.",
    )
    weaker: Weaker = False
    document: Document | None = None


@operation("read", http="GET /documents", tag=TAG, channel=Channel("project:list"))
def list_projects(call: Call, asked: Nothing) -> ProjectList:
    """List the projects."""
    return ProjectList(projects=[ProjectOut.of(one) for one in call.app.documents.projects()])


@operation(
    "read",
    http="GET /documents/{project}",
    tag=TAG,
    tool=Tool("list_documents", "List the documents of one of the user's projects, with their size."),
    channel=Channel("document:list", by_project),
)
def list_documents(call: Call, asked: DocumentListing) -> DocumentList:
    """List the documents of a project. A project that does not exist has none."""
    found = call.app.documents.documents(asked.project)
    return DocumentList(documents=[DocumentOut.of(one) for one in found[asked.offset : asked.offset + asked.limit]])


@operation("write", http="DELETE /documents/{project}", tag=TAG, channel=Channel("project:delete", by_project))
def delete_project(call: Call, asked: OfProject) -> ProjectDeleted:
    """Delete a project with everything in it."""
    return ProjectDeleted(deleted=call.app.documents.delete_project(asked.project))


@operation(
    "read",
    http="POST /documents/{project}/search",
    tag=TAG,
    tool=Tool(
        "search_documents",
        "Find passages in the user's documents (novels, notes, manuals) by meaning and by words, the best first.",
    ),
    may_miss=True,
)
def search_documents(call: Call, asked: DocumentSearch) -> SearchOut:
    """Find the paragraphs that a question is about. If the model is down, keywords answer, and the answer says so."""
    found = call.app.documents.search(
        asked.project,
        asked.query,
        mode=asked.mode,
        top_k=asked.limit,
        min_score=asked.min_score,
        offset=asked.offset,
        document=asked.document,
    )
    if not found.hits and asked.project is not None:
        _check_project(call, asked.project)
    own_cut = asked.weaker or "min_score" in asked.model_fields_set
    return search_out("documents", asked.query, found if own_cut else cut(found))


def _check_project(call: Call, project: str) -> None:
    known = [one.id for one in call.app.documents.projects()]
    if project not in known:
        raise NotFound(f"there is no project {project!r}; there are: {', '.join(known[:50]) or 'none'}")


def _check_reindex(call: Call, asked: Reindex) -> None:
    if asked.project is not None:
        _check_project(call, asked.project)
    elif asked.document is not None:
        raise InvalidArgument("a document belongs to a project; send project (projectId) too")


@operation(
    "write",
    http="POST /documents/{project}/reindex",
    tag=TAG,
    job=Job(
        "reindex", lambda asked: "/".join(filter(None, (asked.project, asked.document))) or "*", check=_check_reindex
    ),
    channel=Channel("embedding:reindex"),
    may_miss=True,
)
def reindex_documents(call: Call, asked: Reindex) -> ReindexOut:
    """Find paragraphs whose vector is missing, out of date or damaged, and embed them again, in a job."""
    _check_reindex(call, asked)
    done = call.app.documents.reindex(
        asked.project,
        document=asked.document,
        batch_size=asked.batch_size,
        progress=call.report,
        cancelled=call.canceled,
    )
    call.go_on()
    return ReindexOut.of(done)


@operation(
    "read",
    http="GET /documents/{project}/{document:name}/chunks",
    tag=TAG,
    channel=Channel("document:chunks", by_project),
    may_miss=True,
)
def list_chunks(call: Call, asked: ChunkListing) -> ChunkList:
    """List the paragraphs of a document, and which of them are waiting for their vector."""
    chunks = call.app.documents.chunks(
        asked.project, asked.document, embeddings=asked.include_embedding, offsets=asked.offset_unit
    )
    return ChunkList(
        chunks=[ChunkOut.of(one, embedding=None if one.embedding is None else one.embedding.tolist()) for one in chunks]
    )


@operation(
    "write",
    http="POST /documents/{project}/{document:name}/rename",
    tag=TAG,
    channel=Channel("document:rename", by_project),
    may_miss=True,
)
def rename_document(call: Call, asked: DocumentRename) -> DocumentPlace:
    """Give a document another name. Its paragraphs keep their ids, and nothing is embedded again."""
    call.app.documents.rename(asked.project, asked.document, asked.name)
    return DocumentPlace(project=asked.project, id=asked.name)


@operation(
    "write",
    http="POST /documents/{project}/{document:name}/move",
    tag=TAG,
    channel=Channel("document:move", by_project),
    may_miss=True,
)
def move_document(call: Call, asked: DocumentMove) -> DocumentPlace:
    """Move a document to another project. Its paragraphs keep their ids, and nothing is embedded again."""
    call.app.documents.move(asked.project, asked.document, asked.to)
    return DocumentPlace(project=asked.to, id=asked.document)


@operation(
    "write", http="PUT /documents/{project}/{document:name}", tag=TAG, channel=Channel("document:save", by_project)
)
def save_document(call: Call, asked: DocumentSave) -> DocumentSaved:
    """Save a document. It is on disk and found by its words when this answers; new paragraphs are embedded after."""
    return DocumentSaved.of(call.app.documents.save(asked.project, asked.document, asked.text))


@operation(
    "read",
    http="GET /documents/{project}/{document:name}",
    tag=TAG,
    tool=Tool("read_document", "Read the whole text of one of the user's documents."),
    may_miss=True,
)
def get_document(call: Call, asked: OfDocument) -> DocumentText:
    """Get a document with its text."""
    documents = call.app.documents
    text = documents.text(asked.project, asked.document)
    parts = [PartOut(name=name, start=start) for start, name in documents.parts(asked.project, asked.document)]
    return DocumentText(project=asked.project, id=asked.document, text=text, parts=parts)


@operation("write", http="DELETE /documents/{project}/{document:name}", tag=TAG, may_miss=True)
def delete_document(call: Call, asked: OfDocument) -> Deleted:
    """Delete a document and everything derived from it."""
    if not call.app.documents.delete(asked.project, asked.document):
        raise missing(asked.project, asked.document)
    return Deleted(deleted=1)
