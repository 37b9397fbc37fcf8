"""Files that callers send: one that is kept, as an upload of the caller's own, and one that is only read."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, UploadFile
from fastapi.responses import JSONResponse
from pydantic import Field

from homing.documents.uploading import file_name
from homing.files import read_file
from homing.files.reading import format_of
from homing.operations.knowledge import FileUploaded, uploaded_out
from homing.operations.models import Output
from homing.server.access import Caller, Reading, Writing
from homing.server.failures import FailureBody
from homing.server.jobs import Job, Report
from homing.server.routes.jobs import JobOut, job_out

router = APIRouter()

SMALL = 256 * 1024
"""Bytes of a file that is read and embedded while its sender waits: some seconds. A larger one may take minutes."""
UPLOADS = 8
"""How many files of one user may wait for their turn; each is in memory until then."""
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
def read_text(file: UploadFile, caller: Reading) -> FileRead:
    """Read a txt, md, pdf, docx, xlsx or epub file. Nothing is kept; PUT the text where it belongs."""
    read = read_file(file.file.read(), file.filename or "")
    return FileRead(text=read.text, format=read.format, filename=read.filename, notes=list(read.notes))


@router.post(
    "/knowledge/upload",
    response_model=FileUploaded,
    responses=ANSWERS,
    tags=["knowledge"],
)
def upload_file(file: UploadFile, caller: Writing) -> FileUploaded | JSONResponse:
    """Upload a file (txt, md, pdf, docx, xlsx, epub); one of the same name is replaced.

    A small one is embedded when this answers. A large one is answered with 202 and a job, whose result is what a small
    one is answered with.
    """
    content, name = file.file.read(), file_name(file.filename or "")
    if len(content) <= SMALL:
        return uploaded_out(caller.app.knowledge(caller.user).upload(content, name))
    # What can be said at once is not left to the job.
    format_of(name, content)
    return JSONResponse(job_out(_begun(content, name, caller).view).model_dump(), status_code=202)


def _begun(content: bytes, name: str, caller: Caller) -> Job:
    def work(report: Report) -> dict[str, Any]:
        # The folder of the user stays open for as long as the job lasts.
        with caller.service.users.lease(caller.user) as app:
            return uploaded_out(app.knowledge(caller.user).upload(content, name, progress=report)).model_dump()

    return caller.service.jobs.submit("upload", name, work, user=caller.user, shared=False, at_once=UPLOADS)
