"""`POST /files/text`: what a file says, before anybody keeps it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, UploadFile
from pydantic import Field

from homing.files import read_file
from homing.operations.models import Output
from homing.server.access import Reading
from homing.server.failures import FailureBody

router = APIRouter(prefix="/files", tags=["documents"])

UNSUPPORTED: dict[int | str, dict[str, Any]] = {
    415: {"model": FailureBody, "description": "files of this type are not read"}
}


class FileRead(Output):
    """The text of a file; `notes` say what a person should know about the reading, such as pages without text."""

    text: str
    format: str = Field(examples=["docx"])
    filename: str = Field(examples=["第一章.docx"])
    notes: list[str]


@router.post("/text", responses=UNSUPPORTED)
def read_text(file: UploadFile, caller: Reading) -> FileRead:
    """Read a txt, md, pdf, docx, xlsx or epub file. Nothing is kept; PUT the text where it belongs."""
    read = read_file(file.file.read(), file.filename or "")
    return FileRead(text=read.text, format=read.format, filename=read.filename, notes=list(read.notes))
