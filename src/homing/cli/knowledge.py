"""`homing knowledge`: a knowledge base of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.found import as_json
from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, excerpt, print_error, print_json, progress
from homing.errors import HomingError

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.knowledge import KnowledgeBase, Uploaded
    from homing.records import Retrieved

app = typer.Typer(
    help="A knowledge base of files: upload, search, list, delete.", no_args_is_help=True, rich_markup_mode=None
)

User = Annotated[str | None, typer.Option("--user", help="Whose knowledge base; without it, your own.")]


@app.command()
def upload(
    files: Annotated[list[Path], typer.Argument(help="Files: txt, md, pdf, docx, xlsx, epub.")],
    user: User = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Upload files; one of the same name is replaced. One that cannot be read does not stop the others."""
    done: list[Uploaded] = []
    failed: list[HomingError] = []
    with opened(data) as app:
        base = base_of(app, user)
        for file in files:
            try:
                with progress(f"Embedding {file.name}", quiet=json) as step:
                    uploaded = base.upload(file, progress=step)
            except HomingError as refusal:
                failed.append(refusal)
                continue
            done.append(uploaded)
            if not json:
                console().print(_sentence(uploaded), markup=False)
                for note in uploaded.notes:
                    console(stderr=True).print(f"  {note}", markup=False)
    if json:
        refused = [{"code": error.code, "message": error.message} for error in failed]
        print_json({"uploaded": done, "failed": refused})
    else:
        for error in failed:
            print_error(error, as_json=False)
    if failed:
        raise typer.Exit(3)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A question, in Chinese or English.")],
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many passages at most.")] = 5,
    min_similarity: Annotated[float, typer.Option(help="Leave out what is less similar, 0 to 1.")] = 0.3,
    file: Annotated[list[str] | None, typer.Option(help="Only this file; may be repeated.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the block that goes into a prompt.")] = False,
    user: User = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Find the passages that a question is about."""
    from homing.knowledge import prompt_block

    with opened(data) as app:
        found = base_of(app, user).search(query, limit=limit, min_similarity=min_similarity, files=file)
    if prompt:
        print(prompt_block(found))
    elif json:
        print_json(as_json(query, found))
    else:
        _show(query, found)


@app.command(name="list")
def list_files(user: User = None, data: Data = None, json: Json = False) -> None:
    """Show the files."""
    from rich.table import Table

    with opened(data) as app:
        files = base_of(app, user).list()
    if json:
        print_json({"files": files})
        return
    table = Table("file", "format", "characters", "passages", "found by")
    for one in files:
        table.add_row(
            one.name, one.format, f"{one.characters:,}", str(one.chunks), "meaning, words" if one.embedded else "words"
        )
    console().print(table)


@app.command()
def embed(user: User = None, data: Data = None, json: Json = False) -> None:
    """Embed files that were uploaded without the model."""
    with opened(data) as app, progress("Embedding", quiet=json) as step:
        base = base_of(app, user)
        done = base.embed_waiting(progress=step)
        left = sum(not one.embedded for one in base.list())
    print_json({"embedded": done, "waiting": left}) if json else console().print(f"{done} files embedded, {left} wait")


@app.command()
def delete(
    name: Annotated[str, typer.Argument(help="The file's name, as `list` shows it.")],
    user: User = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Remove a file and all of its passages."""
    with opened(data) as app:
        gone = base_of(app, user).delete(name)
    print_json({"deleted": gone}) if json else console().print(f"{gone.name} deleted", markup=False)


def base_of(app: Homing, user: str | None) -> KnowledgeBase:
    """The knowledge base of a user, or of whoever runs this."""
    return app.knowledge() if user is None else app.knowledge(user)


def _sentence(done: Uploaded) -> str:
    if done.unchanged:
        return f"{done.file.name} is there already"
    waiting = "" if done.file.embedded else "; the model is not available, words find them (homing knowledge embed)"
    passages = "1 passage" if done.file.chunks == 1 else f"{done.file.chunks} passages"
    return f"{done.file.name} {'replaced' if done.replaced else 'uploaded'}, {passages}{waiting}"


def _show(query: str, found: Retrieved) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    if found.notice is not None:
        out.print(Text(str(found.notice), "yellow"))
    if not found:
        out.print("暂无相关参考资料 / No file says anything about that.")
    for hit in found:
        score = "  –  " if hit.score is None else f"{hit.score:.2f}"
        place = f" ({hit.metadata['part']})" if hit.metadata["part"] else ""
        out.print(Text.assemble((f"{score}  ", "bold green"), (f"{hit.metadata['fileName']}{place}", "cyan")))
        out.print(Padding(excerpt(query, hit, 400), (0, 0, 0, 6)), soft_wrap=False)
