"""Folders of files on this machine, as documents."""

from __future__ import annotations

from pydantic import Field

from homing.documents.folders import SkippedFile
from homing.operations.models import Input, Name, Output, Project
from homing.operations.operation import Call, Tool, operation

MAX_NAMED = 100
"""Files that were left out and are named one by one."""


class FolderImport(Input):
    """A folder with text files on this machine, and the project whose documents they become."""

    project: Project = Field(examples=["notes"])
    folder: Name = Field(examples=["/home/lin/notes"])


class FolderImported(Output):
    """How many files became documents, said the same already, or were left out, and which; a file that cannot be read
    stops no other. `pending` paragraphs are found by words and wait for their vector.
    """

    saved: int
    unchanged: int
    skipped: int
    left_out: list[SkippedFile]
    notes: list[str]
    pending: int


@operation(
    "admin",
    tag="documents",
    tool=Tool(
        "import_documents",
        "Save the text files (md, txt, docx, epub, pdf) of a folder on this machine as documents of a project.",
    ),
    may_miss=True,
)
def import_documents(call: Call, asked: FolderImport) -> FolderImported:
    """Save every text file below a folder on the server as a document that is named by its path there."""
    done = call.app.documents.import_folder(asked.project, asked.folder, call.report)
    return FolderImported(
        saved=len(done.documents),
        unchanged=len(done.unchanged),
        skipped=len(done.skipped),
        left_out=list(done.skipped[:MAX_NAMED]),
        notes=list(done.notes[:MAX_NAMED]),
        pending=call.app.documents.waiting(asked.project),
    )
