"""`homing knowledge`: a knowledge base of files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, Question, answers, checked, group, nothing
from homing.cli.language import text
from homing.cli.lazy import knowledge, reports
from homing.cli.output import note, print_error, print_hits, print_table, progress, say
from homing.errors import HomingError

if TYPE_CHECKING:
    from homing.operations import Call
    from homing.operations.hits import HitOut
    from homing.operations.knowledge import FileUploaded

app = group("knowledge", "A knowledge base of files: upload, search, list, delete.")

NOTHING = "no files yet; add some with: homing knowledge upload FILE"

User = Annotated[str | None, typer.Option("--user", help="Whose files; without it, yours.")]


@app.command()
@answers("homing.cli.reports:FilesUploaded")
def upload(
    call: Call,
    files: Annotated[list[Path], typer.Argument(help="Files: txt, md, pdf, docx, xlsx or epub.")],
    user: User = None,
) -> Answer:
    """Upload files. A file of the same name is replaced.

    A file that cannot be read does not stop the others; the exit code is then 3.
    """
    done: list[FileUploaded] = []
    failed: list[HomingError] = []
    base = call.app.knowledge(user)
    for file in files:
        try:
            with progress("Embedding {name}", name=file.name) as step:
                done.append(knowledge.uploaded_out(base.upload(file, progress=step)))
        except HomingError as refusal:
            failed.append(refusal)

    def show() -> None:
        for one in done:
            _tell(one)
        for error in failed:
            print_error(error, as_json=False)

    found = reports.FilesUploaded(uploaded=done, failed=[reports.Error.of(error) for error in failed])
    return Answer(found, show, exit_code=3 if failed else 0)


@app.command()
@answers("search_files")
def search(
    call: Call,
    query: Question,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many passages.")] = 5,
    min_similarity: Annotated[float, typer.Option(help="Leave out what is less similar, from 0 to 1.")] = 0.3,
    file: Annotated[list[str] | None, typer.Option(help="Search only this file; may be repeated.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the passages as a block for a prompt.")] = False,
    user: User = None,
) -> Answer:
    """Search the files for passages about a question."""
    asked = checked(knowledge.FileSearch, query=query, limit=limit, min_similarity=min_similarity, file_names=file)
    found = knowledge.search_files(_by(call, user), asked)

    def place(hit: HitOut) -> str:
        part = hit.metadata["part"]
        return f"{hit.metadata['fileName']} ({part})" if part else str(hit.metadata["fileName"])

    if prompt:
        return Answer(found, lambda: typer.echo(found.prompt))
    return Answer(found, lambda: print_hits(found, place, "Nothing relevant in the files."))


@app.command(name="list")
@answers("list_files")
def list_files(call: Call, user: User = None) -> Answer:
    """List the files."""
    found = knowledge.list_files(_by(call, user), nothing())
    rows = [
        (
            one.file_name,
            one.format,
            f"{one.characters:,}",
            one.chunks,
            text("meaning, words" if one.embedded else "words"),
        )
        for one in found.files
    ]
    headings = ("file", "format", "characters", "passages", "found by")
    return Answer(found, lambda: print_table(headings, rows, empty=NOTHING))


@app.command()
@answers("homing.cli.reports:FilesEmbedded")
def embed(call: Call, user: User = None) -> Answer:
    """Embed files that were uploaded without a model."""
    base = call.app.knowledge(user)
    with progress("Embedding") as step:
        embedded = base.embed_waiting(progress=step)
    done = reports.FilesEmbedded(embedded=embedded, waiting=sum(not one.embedded for one in base.list()))
    return Answer(done, lambda: say("{one.embedded:#file} embedded, {one.waiting} still waiting", one=done))


@app.command()
@answers("delete_file")
def delete(
    call: Call,
    name: Annotated[str, typer.Argument(help="The name of the file, as `list` shows it.")],
    user: User = None,
) -> Answer:
    """Delete a file and all of its passages."""
    gone = knowledge.delete_file(_by(call, user), checked(knowledge.OfFile, file_name=name))
    return Answer(gone, lambda: say("{name} deleted", name=gone.file_name))


def _by(call: Call, user: str | None) -> Call:
    return call if user is None else replace(call, user=user)


def _tell(done: FileUploaded) -> None:
    file = done.file
    if done.unchanged:
        say("{name} is already there, unchanged", name=file.file_name)
    else:
        said = "{name} replaced, {count:#passage}" if done.replaced else "{name} uploaded, {count:#passage}"
        say(said, name=file.file_name, count=file.chunks)
        if not file.embedded:
            say("no model is available, so words find them for now (homing knowledge embed)")
    for one in done.notes:
        note("  {one}", one=one)
