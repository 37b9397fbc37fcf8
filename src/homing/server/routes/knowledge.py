"""`/knowledge`: a caller's own files, uploaded, searched, listed and deleted. The user is who the token says."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, UploadFile
from fastapi.responses import JSONResponse
from pydantic import Field

from homing.documents.file_name import file_name
from homing.errors import InvalidArgument, NotFound
from homing.files.formats import format_of
from homing.knowledge import FileInfo, Uploaded, prompt_block
from homing.server.access import Caller, Reading, Writing
from homing.server.body import Answer, Body, Limit, Name, Query
from homing.server.failures import FailureBody
from homing.server.found import FoundGroup, group_of
from homing.server.jobs import Job, Report
from homing.server.routes.jobs import JobTold, told

router = APIRouter(prefix="/knowledge", tags=["knowledge"])

SMALL = 256 * 1024
"""Bytes of a file that is read and embedded while its sender waits: some seconds. A larger one may take minutes."""
UPLOADS = 8
"""How many files of one user may wait for their turn; each is in memory until then."""
ANSWERS: dict[int | str, dict[str, Any]] = {
    202: {"model": JobTold, "description": f"a file of more than {SMALL} bytes is taken in by a job"},
    415: {"model": FailureBody, "description": "files of this type are not read"},
}


class KnowledgeFile(Answer):
    """A file; until it is `embedded` its passages are found by their words."""

    file_name: str = Field(examples=["员工手册.pdf"])
    format: str = Field(examples=["pdf"])
    characters: int
    chunks: int
    embedded: bool
    uploaded_at: float


class FileUploaded(Answer):
    """What an upload did; `notes` say what a person should know about the file, such as pages without text."""

    file: KnowledgeFile
    replaced: bool
    unchanged: bool
    notes: list[str]


class KnowledgeSearch(Body):
    """A question to one's own files."""

    query: Query = Field(examples=["年假有几天"])
    limit: Limit = 5
    min_similarity: Annotated[float, Field(ge=0, le=1)] | None = 0.3
    file_names: list[Name] | None = Field(None, max_length=1_000, description="Only these files; null is all of them.")


class KnowledgeFound(FoundGroup):
    """The passages, and the same as a block for a prompt."""

    prompt: str = Field(examples=["### 资料 1 [相似度: 83.2%] 员工手册.pdf (3)\n员工每年有十五天带薪年假。"])


class KnowledgeFiles(Answer):
    """The files, by name."""

    files: list[KnowledgeFile]


class KnowledgeDelete(Body):
    """Which file is to go."""

    file_name: Name = Field(examples=["员工手册.pdf"])


class Everything(Body):
    """Nothing to choose."""


@router.post("/upload", response_model=FileUploaded, responses=ANSWERS)
def upload_file(file: UploadFile, caller: Writing) -> FileUploaded | JSONResponse:
    """Upload a file (txt, md, pdf, docx, xlsx, epub); one of the same name is replaced.

    A small one is embedded when this answers. A large one is answered with 202 and a job, whose result is what a small
    one is answered with. It replaces the file of that name in one step, as soon as it is read.
    """
    content, name = file.file.read(), file_name(file.filename or "")
    if len(content) <= SMALL:
        return _uploaded(caller.app.knowledge(caller.user).upload(content, name))
    # What can be said at once is not left to the job.
    format_of(name, content)
    return JSONResponse(told(_begun(content, name, caller).view).model_dump(), status_code=202)


@router.post("/search")
def search_files(body: KnowledgeSearch, caller: Reading) -> KnowledgeFound:
    """Find the passages that a question is about."""
    caller.service.log_query(body.query)
    names = None if body.file_names is None else [name for name in body.file_names if _can_exist(name)]
    base = caller.app.knowledge(caller.user)
    found = base.search(body.query, limit=body.limit, min_similarity=body.min_similarity, files=names)
    group = caller.service.metrics.searched(group_of("knowledge", body.query, found))
    return KnowledgeFound(**dict(group), prompt=prompt_block(found))


@router.post("/list")
def list_files(caller: Reading, body: Everything | None = None) -> KnowledgeFiles:
    """The caller's files."""
    return KnowledgeFiles(files=[_told(one) for one in caller.app.knowledge(caller.user).list()])


@router.post("/delete")
def delete_file(body: KnowledgeDelete, caller: Writing) -> KnowledgeFile:
    """Remove a file and all of its passages."""
    if not _can_exist(body.file_name):
        raise NotFound("there is no file of that name, nor can there be; the list tells the names")
    return _told(caller.app.knowledge(caller.user).delete(body.file_name))


def _begun(content: bytes, name: str, caller: Caller) -> Job:
    def work(report: Report) -> dict[str, Any]:
        # The folder of the user stays open for as long as the job lasts.
        with caller.service.tenants.lease(caller.user) as app:
            return _uploaded(app.knowledge(caller.user).upload(content, name, progress=report)).model_dump()

    return caller.service.jobs.submit("upload", name, work, user=caller.user, shared=False, at_once=UPLOADS)


def _uploaded(done: Uploaded) -> FileUploaded:
    return FileUploaded(file=_told(done.file), replaced=done.replaced, unchanged=done.unchanged, notes=list(done.notes))


def _can_exist(name: str) -> bool:
    """Whether a file may be called so: a question about one that may not finds nothing, and is no mistake."""
    try:
        return bool(file_name(name))
    except InvalidArgument:
        return False


def _told(info: FileInfo) -> KnowledgeFile:
    return KnowledgeFile(
        file_name=info.name,
        format=info.format,
        characters=info.characters,
        chunks=info.chunks,
        embedded=info.embedded,
        uploaded_at=info.uploaded_at,
    )
