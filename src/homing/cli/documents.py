"""`homing documents`: documents that are searched by paragraph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, SearchMode, Weaker, answers, checked, embed_waiting, group, nothing, piped
from homing.cli.language import text
from homing.cli.lazy import documents, reports
from homing.cli.output import confirm, note, print_hits, print_table, progress, say
from homing.errors import NotFound

if TYPE_CHECKING:
    from homing.operations import Call

app = group("documents", "Documents, searched by paragraph.")

NOTHING = (
    "no documents yet; add one with: homing documents add PROJECT NAME FILE, "
    "or a folder with: homing documents import PROJECT FOLDER"
)

Project = Annotated[str, typer.Argument(help="The name of the project.")]
NewProject = Annotated[str, typer.Argument(help="The project; its first document creates it.")]
Document = Annotated[str, typer.Argument(help="The name of the document.")]


@app.command()
@answers("save_document")
def add(
    call: Call,
    project: NewProject,
    document: Document,
    file: Annotated[Path | None, typer.Argument(help="The file to read; without it, standard input.")] = None,
) -> Answer:
    """Save a document. Only new and changed paragraphs are embedded."""
    read = piped("name a file after the document") if file is None else _read(call, file)
    saved = documents.save_document(
        call, checked(documents.DocumentSave, project=project, document=document, text=read)
    )
    left = embed_waiting(call.app.documents.waiting, call.app.documents.flush)

    def show() -> None:
        counts = {name: len(getattr(saved, name)) for name in ("changed", "unchanged", "moved", "removed")}
        say("paragraphs: {changed} changed, {unchanged} unchanged, {moved} moved, {removed} removed", **counts)
        _tell_waiting(left)

    return Answer(saved, show)


@app.command(name="import")
@answers("homing.cli.reports:FolderImported")
def import_folder(
    call: Call,
    project: NewProject,
    folder: Annotated[Path, typer.Argument(help="A folder with .md, .txt, .docx, .epub or .pdf files.")],
) -> Answer:
    """Save every file of a folder. Each becomes a document named by its path in the folder."""
    library = call.app.documents
    with progress("Reading") as step:
        report = library.import_folder(project, folder, step)
    imported = reports.FolderImported(report=report, waiting=embed_waiting(library.waiting, library.flush))

    def show() -> None:
        counts = {name: len(getattr(report, name)) for name in ("documents", "unchanged", "skipped")}
        say(
            "documents: {documents} saved, {unchanged} unchanged, {skipped} skipped; paragraphs: {chunks}",
            chunks=report.chunks,
            **counts,
        )
        for one in report.notes:
            say("  {one}", one=one)
        for skipped in report.skipped:
            note("  {path}: {reason}", path=skipped.path, reason=skipped.reason)
        _tell_waiting(imported.waiting)

    return Answer(imported, show)


@app.command(name="list")
@answers("list_projects", "list_documents")
def list_documents(
    call: Call,
    project: Annotated[str | None, typer.Argument(help="A project; without it, the projects are listed.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="List at most this many documents.")] = 10_000,
    offset: Annotated[int, typer.Option(help="Skip this many documents.")] = 0,
) -> Answer:
    """List the projects, or the documents of one."""

    if project is None:
        projects = documents.list_projects(call, nothing())
        rows = [(one.id, one.documents, one.chunks, one.pending) for one in projects.projects]
        headings = ("project", "documents", "paragraphs", "without a vector")
        return Answer(projects, lambda: print_table(headings, rows, empty=NOTHING))
    asked = checked(documents.DocumentListing, project=project, limit=limit, offset=offset)
    found = documents.list_documents(call, asked)

    def show() -> None:
        _check_project(call, project)
        rows = [(one.id, one.characters, one.chunks, one.pending) for one in found.documents]
        print_table(("document", "characters", "paragraphs", "without a vector"), rows)

    return Answer(found, show)


@app.command()
@answers("get_document", "list_chunks")
def show(
    call: Call,
    project: Project,
    document: Document,
    chunks: Annotated[bool, typer.Option("--chunks", help="Show its paragraphs with their ids and offsets.")] = False,
) -> Answer:
    """Print a document, or its paragraphs."""
    asked = checked(documents.OfDocument, project=project, document=document)
    found = documents.get_document(call, asked)
    if not chunks:
        return Answer(found, lambda: typer.echo(found.text))
    parts = documents.list_chunks(call, checked(documents.ChunkListing, project=project, document=document))

    def show() -> None:
        for one in parts.chunks:
            waits = f"  ({text('waiting for its vector')})" if one.pending else ""
            typer.echo(f"{one.id}  {one.start_offset}-{one.end_offset}{waits}\n    {' '.join(one.text.split())}")

    return Answer(parts, show)


@app.command()
@answers("search_documents")
def search(
    call: Call,
    project: Project,
    query: Annotated[str, typer.Argument(help='A question; in keyword mode, "…" and 「…」 are phrases.')],
    mode: SearchMode = "hybrid",
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many paragraphs.")] = 20,
    min_score: Annotated[float | None, typer.Option(help="Leave out semantic matches that score lower.")] = None,
    weaker: Weaker = False,
    offset: Annotated[int, typer.Option(help="Skip this many hits, to see the next page.")] = 0,
    document: Annotated[str | None, typer.Option(help="Search only this document.")] = None,
) -> Answer:
    """Search the paragraphs of a project."""
    given = {"mode": mode, "limit": limit, "min_score": min_score, "weaker": weaker, "offset": offset}
    given["document"] = document
    found = documents.search_documents(call, checked(documents.DocumentSearch, project=project, query=query, **given))

    def show() -> None:
        print_hits(
            found,
            lambda hit: f"{hit.metadata['document_id']} {hit.metadata['start_offset']}",
            "No matching paragraphs.",
        )

    return Answer(found, show)


@app.command()
@answers("rename_document")
def rename(
    call: Call, project: Project, document: Document, name: Annotated[str, typer.Argument(help="The new name.")]
) -> Answer:
    """Rename a document. Nothing is embedded again."""
    found = documents.rename_document(
        call, checked(documents.DocumentRename, project=project, document=document, name=name)
    )
    return Answer(found, lambda: say("{document} is now called {name}", document=document, name=name))


@app.command()
@answers("move_document")
def move(
    call: Call,
    project: Project,
    document: Document,
    to: Annotated[str, typer.Argument(help="The project to move it to.")],
) -> Answer:
    """Move a document to another project. Nothing is embedded again."""
    found = documents.move_document(call, checked(documents.DocumentMove, project=project, document=document, to=to))
    return Answer(found, lambda: say("{document} is now in {to}", document=document, to=to))


@app.command()
@answers("delete_document", "delete_project")
def remove(
    call: Call,
    project: Project,
    document: Annotated[str | None, typer.Argument(help="A document; without it, the whole project.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete a whole project without asking.")] = False,
) -> Answer:
    """Delete a document or a whole project."""
    if document is not None:
        done = documents.delete_document(call, checked(documents.OfDocument, project=project, document=document))
    else:
        count = _check_project(call, project)
        if not yes:
            confirm("Delete the project {project} with its {count:#document}?", project=project, count=count)
        done = documents.delete_project(call, checked(documents.OfProject, project=project))
    return Answer(done, lambda: say("{count} removed", count=done.deleted))


@app.command()
@answers("homing.operations.documents:ReindexOut")
def reindex(
    call: Call,
    project: Annotated[str | None, typer.Argument(help="A project; without it, all projects.")] = None,
    document: Annotated[str | None, typer.Option(help="Only this document.")] = None,
    batch_size: Annotated[int, typer.Option(help="How many paragraphs to embed at a time.")] = 128,
) -> Answer:
    """Embed paragraphs whose vector is missing or damaged."""
    if project is not None:
        _check_project(call, project)
    with progress("Embedding") as step:
        done = call.app.documents.reindex(project, document=document, batch_size=batch_size, progress=step)

    def show() -> None:
        say(
            "{done.chunks:#paragraph} in {done.documents:#document}: {done.embedded} embedded, "
            "{done.repaired} of them damaged before; {done.removed} leftovers removed",
            done=done,
        )
        _tell_waiting(done.waiting)

    return Answer(documents.ReindexOut.of(done), show)


def _read(call: Call, file: Path) -> str:
    from homing.files import read_file

    return read_file(file, limits=call.app.file_limits).text


def _check_project(call: Call, project: str) -> int:
    """How many documents a project has. Where a name is typed, a project without any is a typing error."""
    found = call.app.documents.documents(project)
    if not found:
        raise NotFound(text("there is no project {name!r}; `homing documents list` shows the projects", name=project))
    return len(found)


def _tell_waiting(left: int) -> None:
    if left:
        note("{left:#paragraph} without a vector yet, found by words only (homing documents reindex)", left=left)
