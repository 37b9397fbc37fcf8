"""A user's own files, searched, listed and deleted; how they are uploaded is each surface's own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from homing.documents.uploading import file_name
from homing.errors import InvalidArgument, NotFound
from homing.knowledge import FileInfo, Uploaded, prompt_block
from homing.operations.hits import SearchOut, search_out
from homing.operations.models import Input, Limit, Name, Nothing, Output, Query
from homing.operations.operation import Call, operation

TAG = "knowledge"


class FileOut(Output):
    """A file; until it is `embedded` its passages are found by their words."""

    file_name: str = Field(examples=["员工手册.pdf"])
    format: str = Field(examples=["pdf"])
    characters: int
    chunks: int
    embedded: bool
    uploaded_at: float


class FileUploaded(Output):
    """What an upload did; `notes` say what a person should know about the file, such as pages without text."""

    file: FileOut
    replaced: bool
    unchanged: bool
    notes: list[str]


class FileList(Output):
    """The files, by name."""

    files: list[FileOut]


class FileSearchOut(SearchOut):
    """The passages, and the same as a block for a prompt."""

    prompt: str = Field(examples=["### 资料 1 [相似度: 83.2%] 员工手册.pdf (3)\n员工每年有十五天带薪年假。"])


class FileSearch(Input):
    """A question to one's own files."""

    query: Query = Field(examples=["年假有几天"])
    limit: Limit = 5
    min_similarity: Annotated[float, Field(ge=0, le=1)] | None = 0.3
    file_names: list[Name] | None = Field(None, max_length=1_000, description="Only these files; null is all of them.")


class OfFile(Input):
    """A file by its name."""

    file_name: Name = Field(examples=["员工手册.pdf"])


@operation("read", http="POST /knowledge/search", tag=TAG)
def search_files(call: Call, asked: FileSearch) -> FileSearchOut:
    """Find the passages that a question is about."""
    names = None if asked.file_names is None else [name for name in asked.file_names if _can_exist(name)]
    found = call.app.knowledge(call.user).search(
        asked.query, limit=asked.limit, min_similarity=asked.min_similarity, files=names
    )
    return FileSearchOut(**dict(search_out("knowledge", asked.query, found)), prompt=prompt_block(found))


@operation("read", http="POST /knowledge/list", tag=TAG)
def list_files(call: Call, asked: Nothing) -> FileList:
    """List your files."""
    return FileList(files=[file_out(one) for one in call.app.knowledge(call.user).list()])


@operation("write", http="POST /knowledge/delete", tag=TAG, may_miss=True)
def delete_file(call: Call, asked: OfFile) -> FileOut:
    """Remove a file and all of its passages."""
    if not _can_exist(asked.file_name):
        raise NotFound("there is no file of that name, nor can there be; the list tells the names")
    return file_out(call.app.knowledge(call.user).delete(asked.file_name))


def uploaded_out(done: Uploaded) -> FileUploaded:
    """What an upload did."""
    return FileUploaded.of(done, file=file_out(done.file))


def file_out(info: FileInfo) -> FileOut:
    """A file."""
    return FileOut.of(info, file_name=info.name)


def _can_exist(name: str) -> bool:
    """Whether a file may be called so: a question about one that may not finds nothing, and is no mistake."""
    try:
        return bool(file_name(name))
    except InvalidArgument:
        return False
