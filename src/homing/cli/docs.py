"""`homing docs`: documents that are searched by paragraph."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.calls import Data, Json, SearchMode, calling, checked, group, opened, work_through
from homing.cli.output import counted, note, print_hits, print_json, print_table, progress, reads_chinese, say
from homing.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from pydantic import BaseModel

    from homing.app import Homing

app = group("Documents, searched by paragraph.")

Project = Annotated[str, typer.Argument(help="The name of the project.")]
NewProject = Annotated[str, typer.Argument(help="The project; its first document creates it.")]
Document = Annotated[str, typer.Argument(help="The name of the document.")]


@app.command()
def add(
    project: NewProject,
    document: Document,
    file: Annotated[Path | None, typer.Argument(help="The file to read; without it, standard input.")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Save a document. Only new and changed paragraphs are embedded."""
    from homing.operations.documents import DocumentSave, save_document

    text = _piped() if file is None else _read(file)
    with calling(data) as call:
        saved = save_document(call, checked(DocumentSave, project=project, document=document, text=text))
        left = _embed(call.app, quiet=json)
    if json:
        print_json(saved)
        return
    counts = {name: len(getattr(saved, name)) for name in ("changed", "unchanged", "moved", "removed")}
    say("paragraphs: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    _tell_waiting(left)


@app.command(name="import")
def import_folder(
    project: NewProject,
    folder: Annotated[Path, typer.Argument(help="A folder with .md, .txt, .docx, .epub or .pdf files.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Save every file of a folder. Each becomes a document named by its path in the folder."""
    from homing.cli.reports import FolderImported

    with opened(data) as app:
        with progress("Reading", quiet=json) as step:
            report = app.documents.import_folder(project, folder, step)
        imported = FolderImported.of(report, waiting=_embed(app, quiet=json))
    if json:
        print_json(imported)
        return
    counts = f"{len(report.documents)} saved, {len(report.unchanged)} unchanged, {len(report.skipped)} skipped"
    say(f"documents: {counts}; paragraphs: {report.chunks}")
    for one in report.notes:
        say(f"  {one}")
    for skipped in report.skipped:
        note(f"  {skipped.path}: {skipped.reason}")
    _tell_waiting(imported.waiting)


@app.command(name="list")
def list_documents(
    project: Annotated[str | None, typer.Argument(help="A project; without it, the projects are listed.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="List at most this many documents.")] = 1_000,
    offset: Annotated[int, typer.Option(help="Skip this many documents.")] = 0,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the projects, or the documents of one."""
    from homing.operations import documents as operations
    from homing.operations.models import Nothing

    with calling(data) as call:
        if project is None:
            projects = operations.list_projects(call, Nothing())
            _print_list(json, projects, "project", "documents", projects.projects)
            return
        asked = checked(operations.DocumentListing, project=project, limit=limit, offset=offset)
        found = operations.list_documents(call, asked)
        if not json:
            _check_project(call.app, project)
    _print_list(json, found, "document", "characters", found.documents)


@app.command()
def show(
    project: Project,
    document: Document,
    chunks: Annotated[bool, typer.Option("--chunks", help="Show its paragraphs with their ids and offsets.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print a document, or its paragraphs."""
    from homing.operations.documents import OfDocument, get_document, list_chunks

    asked = checked(OfDocument, project=project, document=document)
    with calling(data) as call:
        found = get_document(call, asked)
        parts = list_chunks(call, asked) if chunks else None
    if json:
        print_json(found if parts is None else parts)
    elif parts is None:
        typer.echo(found.text)
    else:
        for one in parts.chunks:
            waits = "  (waiting for its vector)" if one.pending else ""
            typer.echo(f"{one.id}  {one.start_offset}-{one.end_offset}{waits}\n    {' '.join(one.text.split())}")


@app.command()
def search(
    project: Project,
    query: Annotated[str, typer.Argument(help='A question; in keyword mode, "…" and 「…」 are phrases.')],
    mode: SearchMode = "hybrid",
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many paragraphs.")] = 20,
    min_score: Annotated[float, typer.Option(help="Leave out semantic matches that score lower.")] = 0.55,
    offset: Annotated[int, typer.Option(help="Skip this many hits, to see the next page.")] = 0,
    document: Annotated[str | None, typer.Option(help="Search only this document.")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Search the paragraphs of a project."""
    from homing.operations.documents import DocumentSearch, search_documents

    given = {"mode": mode, "limit": limit, "min_score": min_score, "offset": offset, "document": document}
    asked = checked(DocumentSearch, project=project, query=query, **given)
    with calling(data) as call:
        if not json:
            _check_project(call.app, project)
        found = search_documents(call, asked)
    if json:
        print_json(found)
    else:
        print_hits(
            found,
            lambda hit: f"{hit.metadata['document_id']} {hit.metadata['start_offset']}",
            "没有找到相关的段落 / No matching paragraphs.",
        )


@app.command()
def rename(
    project: Project,
    document: Document,
    name: Annotated[str, typer.Argument(help="The new name.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Rename a document. Nothing is embedded again."""
    from homing.operations.documents import DocumentRename, rename_document

    with calling(data) as call:
        found = rename_document(call, checked(DocumentRename, project=project, document=document, name=name))
    print_json(found) if json else say(f"{document} is now called {name}")


@app.command()
def move(
    project: Project,
    document: Document,
    to: Annotated[str, typer.Argument(help="The project to move it to.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Move a document to another project. Nothing is embedded again."""
    from homing.operations.documents import DocumentMove, move_document

    with calling(data) as call:
        found = move_document(call, checked(DocumentMove, project=project, document=document, to=to))
    print_json(found) if json else say(f"{document} is now in {to}")


@app.command()
def remove(
    project: Project,
    document: Annotated[str | None, typer.Argument(help="A document; without it, the whole project.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete a whole project without asking.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Delete a document or a whole project."""
    from homing.operations.documents import OfDocument, OfProject, delete_document, delete_project

    with calling(data) as call:
        if document is not None:
            done = delete_document(call, checked(OfDocument, project=project, document=document))
        else:
            count = _check_project(call.app, project)
            if not yes:
                english = f"Delete the project {project} with its {counted(count, 'document')}?"
                question = f"删除项目 {project} 和其中的 {count} 篇文档？" if reads_chinese() else english
                typer.confirm(question, abort=True, err=True)
            done = delete_project(call, checked(OfProject, project=project))
    print_json(done) if json else say(f"{done.deleted} removed")


@app.command()
def reindex(
    project: Annotated[str | None, typer.Argument(help="A project; without it, all projects.")] = None,
    document: Annotated[str | None, typer.Option(help="Only this document.")] = None,
    batch_size: Annotated[int, typer.Option(help="How many paragraphs to embed at a time.")] = 128,
    data: Data = None,
    json: Json = False,
) -> None:
    """Embed paragraphs whose vector is missing or damaged."""
    from homing.operations.documents import ReindexOut

    with opened(data) as app, progress("Embedding", quiet=json) as step:
        if project is not None:
            _check_project(app, project)
        done = app.documents.reindex(project, document=document, batch_size=batch_size, progress=step)
        report = ReindexOut.of(done)
    if json:
        print_json(report)
        return
    say(
        f"{counted(report.chunks, 'paragraph')} in {counted(report.documents, 'document')}: "
        f"{report.embedded} embedded, {report.repaired} of them damaged before; {report.removed} leftovers removed"
    )
    _tell_waiting(report.waiting)


def _piped() -> str:
    """What was piped in. Nothing is a mistake more often than a text: it would empty the document."""
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    if not text:
        raise InvalidArgument("there is no text; name a file after the document, or pipe the text in")
    return text


def _read(file: Path) -> str:
    from homing.files import read_file

    return read_file(file).text


def _check_project(app: Homing, project: str) -> int:
    """How many documents a project has. Where a name is typed, a project without any is a typing error."""
    found = app.documents.documents(project)
    if not found:
        raise NotFound(f"there is no project {project!r}; `homing docs list` shows the projects")
    return len(found)


def _print_list(json: bool, found: BaseModel, name: str, size: str, rows: Sequence[Any]) -> None:
    if json:
        print_json(found)
        return
    shown = [(one.id, getattr(one, size), one.chunks, one.pending) for one in rows]
    print_table((name, size, "paragraphs", "without a vector"), shown)


def _embed(app: Homing, *, quiet: bool) -> int:
    with progress("Embedding", quiet=quiet) as step:
        return work_through(app.documents.waiting, app.documents.flush, step)


def _tell_waiting(left: int) -> None:
    if left:
        note(f"{counted(left, 'paragraph')} without a vector yet, found by words only (homing docs reindex)")
