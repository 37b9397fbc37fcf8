"""`homing docs`: documents that are searched by paragraph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.found import as_json, mode_of
from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json, progress
from homing.cli.waiting import work_through
from homing.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from homing.documents import DocumentInfo, DocumentService
    from homing.records import Retrieved

app = typer.Typer(help="Documents, searched by paragraph.", no_args_is_help=True, rich_markup_mode=None)

Project = Annotated[str, typer.Argument(help="The project; it is made by the first document.")]
Document = Annotated[str, typer.Argument(help="The name of the document.")]


@app.command()
def add(
    project: Project,
    document: Document,
    file: Annotated[Path | None, typer.Argument(help="A file to read; without it, standard input.")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Save a document. Only paragraphs that say something new are embedded."""
    text = _piped() if file is None else _read(file)
    with opened(data) as homing:
        documents = homing.documents
        saved = documents.save(project, document, text)
        with progress("Embedding", quiet=json) as step:
            left = _embed(documents, step)
    if json:
        print_json({"project": project, "document": document, "changes": saved, "waiting": left})
        return
    counts = {name: len(getattr(saved, name)) for name in ("changed", "unchanged", "moved", "removed")}
    console().print(", ".join(f"{count} {name}" for name, count in counts.items()))
    _tell_waiting(left)


@app.command(name="import")
def import_folder(
    project: Project,
    folder: Annotated[Path, typer.Argument(help="A folder with .md, .txt, .docx, .epub or .pdf files.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Save every file of a folder as a document. Its path there is its name."""
    with opened(data) as homing:
        documents = homing.documents
        with progress("Reading", quiet=json) as step:
            report = documents.import_folder(project, folder, step)
        with progress("Embedding", quiet=json) as step:
            left = _embed(documents, step)
    if json:
        print_json({"report": report, "waiting": left})
        return
    told = f"{len(report.documents)} written, {len(report.unchanged)} unchanged, {len(report.skipped)} left out"
    console().print(f"{told}; {report.chunks} paragraphs", markup=False)
    for note in report.notes:
        console().print(f"  {note}", markup=False)
    for one in report.skipped:
        console(stderr=True).print(f"  {one.path}: {one.reason}", markup=False)
    _tell_waiting(left)


@app.command(name="list")
def list_documents(
    project: Annotated[str | None, typer.Argument(help="A project; without it, the projects.")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show the projects, or the documents of one."""
    from rich.table import Table
    from rich.text import Text

    with opened(data) as homing:
        documents = homing.documents
        found: list[Any] = [*documents.projects()] if project is None else _documents(documents, project)
    if json:
        print_json(found)
        return
    names = ("documents", "chunks", "pending") if project is None else ("characters", "chunks", "pending")
    table = Table("project" if project is None else "document", *names)
    for one in found:
        table.add_row(Text(one.id), *(str(getattr(one, name)) for name in names))
    console().print(table)


@app.command()
def show(
    project: Project,
    document: Document,
    chunks: Annotated[bool, typer.Option("--chunks", help="Its paragraphs with their ids and places.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print a document, or its paragraphs."""
    with opened(data) as homing:
        documents = homing.documents
        text = documents.text(project, document)
        found = documents.chunks(project, document) if chunks or json else []
    if json:
        print_json({"project": project, "document": document, "text": text, "chunks": found})
    elif not chunks:
        typer.echo(text)
    else:
        for one in found:
            waits = "  (waits for its vector)" if one.pending else ""
            typer.echo(f"{one.id}  {one.start_offset}-{one.end_offset}{waits}\n    {' '.join(one.text.split())}")


@app.command()
def search(
    project: Project,
    query: Annotated[str, typer.Argument(help='A question; in keyword mode, "…" and 「…」 are phrases.')],
    mode: Annotated[str, typer.Option(help="hybrid, semantic or keyword.")] = "hybrid",
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 20,
    min_score: Annotated[float, typer.Option(help="Leave out what means something else; 0 shows everything.")] = 0.55,
    offset: Annotated[int, typer.Option(help="How many to pass over: the next page.")] = 0,
    document: Annotated[str | None, typer.Option(help="Only this document.")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Search the paragraphs of a project."""
    with opened(data) as homing:
        documents = homing.documents
        _documents(documents, project)
        found = documents.search(
            project,
            query,
            mode=mode_of(mode),
            top_k=limit,
            min_score=min_score,
            offset=offset,
            document=document,
        )
    if json:
        print_json(as_json(query, found))
    else:
        _show(found)


@app.command()
def remove(
    project: Project,
    document: Annotated[str | None, typer.Argument(help="A document; without it, the whole project.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete a whole project without asking.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Delete a document, or a project. Everything that was made of it goes, too."""
    with opened(data) as homing:
        documents = homing.documents
        if document is not None:
            if not documents.delete(project, document):
                raise NotFound(f"there is no document {document!r} in project {project!r}; see homing docs list")
            removed = 1
        else:
            count = len(_documents(documents, project))
            if not yes:
                typer.confirm(f"Delete {count} documents of {project}?", abort=True, err=True)
            removed = documents.delete_project(project)
    print_json({"removed": removed}) if json else console().print(f"{removed} removed")


@app.command()
def reindex(
    project: Annotated[str | None, typer.Argument(help="A project; without it, all of them.")] = None,
    document: Annotated[str | None, typer.Option(help="Only this document.")] = None,
    batch_size: Annotated[int, typer.Option(help="Paragraphs embedded together.")] = 128,
    data: Data = None,
    json: Json = False,
) -> None:
    """Embed what has no vector, or a damaged one. What is in order is left alone."""
    with opened(data) as homing, progress("Embedding", quiet=json) as step:
        if project is not None:
            _documents(homing.documents, project)
        report = homing.documents.reindex(project, document=document, batch_size=batch_size, progress=step)
    if json:
        print_json(report)
        return
    console().print(
        f"{report.chunks} paragraphs of {report.documents} documents: {report.embedded} embedded, "
        f"{report.repaired} damaged, {report.removed} leftovers removed"
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


def _documents(documents: DocumentService, project: str) -> list[DocumentInfo]:
    """The documents of a project that has some; where a name is typed, one without any is a slip."""
    found = documents.documents(project)
    if not found:
        raise NotFound(f"there is no project {project!r}; see homing docs list")
    return found


def _embed(documents: DocumentService, step: Callable[[int, int], None]) -> int:
    return work_through(documents.waiting, documents.flush, step)


def _tell_waiting(left: int) -> None:
    if left:
        told = f"{left} paragraphs wait for the embedding model; words find them (homing docs reindex)"
        console(stderr=True).print(told)


def _show(found: Retrieved) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    if found.notice is not None:
        out.print(Text(str(found.notice), "yellow"))
    if not found:
        out.print("没有找到相关的段落 / No paragraph is about that.")
    for hit in found:
        score = "  –  " if hit.score is None else f"{hit.score:.2f}"
        place = f"{hit.metadata['document_id']} {hit.metadata['start_offset']}"
        waits = "  pending" if hit.metadata["pending"] else ""
        out.print(Text.assemble((f"{score}  ", "bold green"), (place, "cyan"), (waits, "yellow")))
        shown = Text(hit.metadata["snippet"])
        for start, end in hit.metadata["snippet_highlights"]:
            shown.stylize("bold yellow", start, end)
        out.print(Padding(shown, (0, 0, 0, 6)), soft_wrap=False)
