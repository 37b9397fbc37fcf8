"""Files that callers send: one that is kept, as an upload of the caller's own, and one that is only read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request, UploadFile
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from homing.documents.uploading import file_name
from homing.files import read_file
from homing.files.reading import format_of
from homing.operations.knowledge import FileUploaded, uploaded_out
from homing.operations.models import Output
from homing.progress import IsCanceled
from homing.server.access import Caller, Reading, Writing
from homing.server.failures import FailureBody
from homing.server.job import Job
from homing.server.job_log import Order
from homing.server.ordering import UPLOAD, ordered_work
from homing.server.routes.jobs import JobOut, job_out
from homing.server.service import UPLOADS
from homing.server.watched import watched

T = TypeVar("T")
router = APIRouter()

SMALL = 256 * 1024
"""Bytes of a file that is read and embedded while its sender waits: some seconds. A larger one may take minutes."""
UNSUPPORTED: dict[int | str, dict[str, Any]] = {
    415: {"model": FailureBody, "description": "files of this type are not read"}
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    202: {"model": JobOut, "description": f"a file of more than {SMALL} bytes is taken in by a job"},
    409: {},
    **UNSUPPORTED,
}


class FileRead(Output):
    """The text of a file; `notes` say what a person should know about the reading, such as pages without text."""

    text: str
    format: str = Field(examples=["docx"])
    filename: str = Field(examples=["第一章.docx"])
    notes: list[str]


@router.post("/files/text", responses=UNSUPPORTED, tags=["documents"])
async def read_text(request: Request, file: UploadFile, caller: Reading) -> FileRead:
    """Read a txt, md, pdf, docx, xlsx or epub file. Nothing is kept; PUT the text where it belongs."""
    content, limits = await file.read(), caller.app.file_limits
    read = await _while_wanted(
        request, caller, lambda gone: read_file(content, file.filename or "", limits=limits, canceled=gone)
    )
    return FileRead(text=read.text, format=read.format, filename=read.filename, notes=list(read.notes))


@router.post(
    "/knowledge/upload",
    response_model=FileUploaded,
    responses=ANSWERS,
    tags=["knowledge"],
)
async def upload_file(request: Request, file: UploadFile, caller: Writing) -> FileUploaded | JSONResponse:
    """Upload a file (txt, md, pdf, docx, xlsx, epub); one of the same name is replaced.

    A small one is embedded when this answers. A large one is answered with 202 and a job, whose result is what a small
    one is answered with.
    """
    content, name = await file.read(), file_name(file.filename or "")
    if len(content) <= SMALL:

        def upload(canceled: IsCanceled) -> FileUploaded:
            return uploaded_out(caller.app.knowledge(caller.user).upload(content, name, canceled=canceled))

        return await _while_wanted(request, caller, upload)
    # What can be said at once is not left to the job.
    format_of(name, content)
    job = await run_in_threadpool(_begun, content, name, caller)
    return JSONResponse(job_out(job.view).model_dump(), status_code=202)


async def _while_wanted(request: Request, caller: Caller, work: Callable[[IsCanceled], T]) -> T:
    """What a piece of work comes to, when it has its turn; it ends when the client has gone or the server stops."""
    service = caller.service
    async with service.file_turns.of(caller.user):
        return await watched(request, lambda gone: work(lambda: gone() or service.stopping.is_set()))


def _begun(content: bytes, name: str, caller: Caller) -> Job:
    order = Order(UPLOAD, name, caller.scope, content)
    work = ordered_work(caller.service, order, caller.user)
    return caller.service.jobs.submit(UPLOAD, name, work, user=caller.user, shared=False, at_once=UPLOADS, order=order)
