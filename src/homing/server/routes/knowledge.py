"""`POST /knowledge/upload`: a file of the caller's own. The user is who the token says."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, UploadFile
from fastapi.responses import JSONResponse

from homing.documents.file_name import file_name
from homing.files.reading import format_of
from homing.operations.knowledge import FileUploaded, uploaded_out
from homing.server.access import Caller, Writing
from homing.server.failures import FailureBody
from homing.server.jobs import Job, Report
from homing.server.routes.jobs import JobOut, job_out

router = APIRouter(prefix="/knowledge", tags=["knowledge"])

SMALL = 256 * 1024
"""Bytes of a file that is read and embedded while its sender waits: some seconds. A larger one may take minutes."""
UPLOADS = 8
"""How many files of one user may wait for their turn; each is in memory until then."""
ANSWERS: dict[int | str, dict[str, Any]] = {
    202: {"model": JobOut, "description": f"a file of more than {SMALL} bytes is taken in by a job"},
    415: {"model": FailureBody, "description": "files of this type are not read"},
}


@router.post("/upload", response_model=FileUploaded, responses=ANSWERS, operation_id="upload_file")
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
