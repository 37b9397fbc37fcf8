"""`homing knowledge`: a knowledge base of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Data, Json, Question, calling, checked, group
from homing.cli.output import counted, note, print_error, print_hits, print_json, print_table, progress, say
from homing.errors import HomingError

if TYPE_CHECKING:
    from homing.operations.hits import HitOut
    from homing.operations.knowledge import FileUploaded

app = group("A knowledge base of files: upload, search, list, delete.")

User = Annotated[str | None, typer.Option("--user", help="Whose files; without it, yours.")]


@app.command()
def upload(
    files: Annotated[list[Path], typer.Argument(help="Files: txt, md, pdf, docx, xlsx or epub.")],
    user: User = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Upload files. A file of the same name is replaced.

    A file that cannot be read does not stop the others; the exit code is then 3.
    """
    from homing.cli.reports import FilesUploaded, Refusal
    from homing.operations.knowledge import uploaded_out

    done: list[FileUploaded] = []
    failed: list[HomingError] = []
    with calling(data, user=user) as call:
        base = call.app.knowledge(call.user)
        for file in files:
            try:
                with progress(f"Embedding {file.name}", quiet=json) as step:
                    done.append(uploaded_out(base.upload(file, progress=step)))
            except HomingError as refusal:
                failed.append(refusal)
                continue
            if not json:
                _tell(done[-1])
    if json:
        print_json(FilesUploaded(uploaded=done, failed=[Refusal.of(error) for error in failed]))
    else:
        for error in failed:
            print_error(error, as_json=False)
    if failed:
        raise typer.Exit(3)


@app.command()
def search(
    query: Question,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many passages.")] = 5,
    min_similarity: Annotated[float, typer.Option(help="Leave out what is less similar, from 0 to 1.")] = 0.3,
    file: Annotated[list[str] | None, typer.Option(help="Search only this file; may be repeated.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the passages as a block for a prompt.")] = False,
    user: User = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Search the files for passages about a question."""
    from homing.operations.knowledge import FileSearch, search_files

    asked = checked(FileSearch, query=query, limit=limit, min_similarity=min_similarity, file_names=file)
    with calling(data, user=user) as call:
        found = search_files(call, asked)

    def place(hit: HitOut) -> str:
        part = hit.metadata["part"]
        return f"{hit.metadata['fileName']} ({part})" if part else str(hit.metadata["fileName"])

    if json:
        print_json(found)
    elif prompt:
        typer.echo(found.prompt)
    else:
        print_hits(found, place, "暂无相关参考资料 / Nothing relevant in the files.")


@app.command(name="list")
def list_files(user: User = None, data: Data = None, json: Json = False) -> None:
    """List the files."""
    from homing.operations.knowledge import list_files as operation
    from homing.operations.models import Nothing

    with calling(data, user=user) as call:
        found = operation(call, Nothing())
    if json:
        print_json(found)
        return
    rows = [
        (one.file_name, one.format, f"{one.characters:,}", one.chunks, "meaning, words" if one.embedded else "words")
        for one in found.files
    ]
    print_table(("file", "format", "characters", "passages", "found by"), rows)


@app.command()
def embed(user: User = None, data: Data = None, json: Json = False) -> None:
    """Embed files that were uploaded without a model."""
    from homing.cli.reports import FilesEmbedded

    with calling(data, user=user) as call, progress("Embedding", quiet=json) as step:
        base = call.app.knowledge(call.user)
        embedded = base.embed_waiting(progress=step)
        done = FilesEmbedded(embedded=embedded, waiting=sum(not one.embedded for one in base.list()))
    print_json(done) if json else say(f"{counted(done.embedded, 'file')} embedded, {done.waiting} still waiting")


@app.command()
def delete(
    name: Annotated[str, typer.Argument(help="The name of the file, as `list` shows it.")],
    user: User = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Delete a file and all of its passages."""
    from homing.operations.knowledge import OfFile, delete_file

    with calling(data, user=user) as call:
        gone = delete_file(call, checked(OfFile, file_name=name))
    print_json(gone) if json else say(f"{gone.file_name} deleted")


def _tell(done: FileUploaded) -> None:
    file = done.file
    if done.unchanged:
        say(f"{file.file_name} is already there, unchanged")
    else:
        waits = "" if file.embedded else "; no model is available, so words find them for now (homing knowledge embed)"
        say(f"{file.file_name} {'replaced' if done.replaced else 'uploaded'}, {counted(file.chunks, 'passage')}{waits}")
    for one in done.notes:
        note(f"  {one}")
