"""`homing search` and `homing embed`: look through a folder of text files, and turn texts into vectors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, Data, Question, SearchMode, Weaker, answers, mode_of, required
from homing.cli.lazy import reports
from homing.cli.output import console, counted, note, print_hits, print_table, progress, say
from homing.errors import HomingError, InvalidArgument, NotFound, StoreError

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.cli.reports import FolderSearchOut
    from homing.documents.folders import FollowedFolder
    from homing.operations.hits import HitOut

INDEX = ".homing"
"""The folder inside the searched folder that holds its index; it may be deleted at any time."""


@answers("homing.cli.reports:FolderSearchOut")
def search_folder(
    query: Question,
    folder: Annotated[Path, typer.Argument(help="A folder with .md or .txt files.")] = Path(),
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many passages.")] = 5,
    mode: SearchMode = "hybrid",
    min_score: Annotated[float | None, typer.Option(help="Leave out semantic matches that score lower.")] = None,
    weaker: Weaker = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each leg ranked a passage.")] = False,
    data: Data = None,
) -> Answer:
    """Search a folder of text files.

    The first search indexes the folder (into .homing inside it, or into --data); later searches index only the files
    that changed.
    """
    if not query.strip():
        raise InvalidArgument('the query is empty; say what to look for, e.g. homing search "孤独的感觉" novels/')
    from dataclasses import replace

    from homing.app import open_app
    from homing.engine.search import cut
    from homing.operations.hits import search_out

    with open_app(data or _index_folder(folder)) as app, _loading_the_model(app):
        index = _index(app, folder)
        with progress("Indexing") as step:
            refreshed = index.refresh(step)
        options = replace(app.search_options, limit=limit, mode=mode_of(mode), min_score=min_score)
        passages = index.search(query, options)
        answer = search_out("folder", query, passages if weaker or min_score is not None else cut(passages))
    found = reports.FolderSearchOut(**dict(answer), index=refreshed)
    return Answer(found, lambda: _show(found, explain=explain))


def _index_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder}; name a folder with .md or .txt files")
    return folder / INDEX


def _index(app: Homing, folder: Path) -> FollowedFolder:
    try:
        return app.folder(folder)
    except StoreError as error:
        error.args = (f"{error.message}; keep the index elsewhere with --data FOLDER",)
        error.message = error.args[0]
        raise


@contextmanager
def _loading_the_model(app: Homing) -> Iterator[None]:
    """The model loads while the folder is looked through; a failure shows when the model is really needed."""

    def load() -> None:
        with suppress(HomingError):
            if app.embedder is not None:
                app.embedder.embed([" "], kind="query")

    loading = Thread(target=load)
    loading.start()
    try:
        yield
    finally:
        loading.join()


def _show(found: FolderSearchOut, *, explain: bool) -> None:
    from rich.text import Text

    index = found.index
    for skipped in index.skipped:
        note(f"skipped {skipped.path}: {skipped.reason}")

    def place(hit: HitOut) -> str:
        return f"{hit.metadata['path']}:{hit.metadata['line']}"

    print_hits(found, place, "没有找到相关内容 / Nothing found.", length=240, explain=explain)
    files = index.added + index.changed + index.unchanged
    message = (
        f"{counted(len(found.hits), 'passage')} from {counted(files, 'file')}, {found.mode}, {found.took_ms:.0f} ms"
    )
    console().print(Text(message, "dim"))


@answers("homing.cli.reports:Vectors")
def embed_texts(
    texts: Annotated[
        list[str] | None, typer.Argument(help="The texts; without any, the lines of standard input.")
    ] = None,
    query: Annotated[bool, typer.Option("--query", help="Embed the texts as questions, not as documents.")] = False,
) -> Answer:
    """Turn texts into vectors. On a terminal it shows how similar the texts are."""
    from homing.config import load
    from homing.resolve import resolve_embedder
    from homing.vectors import score_of

    given = texts or [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
    if not given:
        raise InvalidArgument("there is nothing to embed; give texts as arguments or lines on standard input")
    embedder = required(resolve_embedder(load().settings))
    rows = embedder.embed(given, kind="query" if query else "document")

    def show() -> None:
        say(f"{embedder.id}: cosine (score) of each pair")
        shown = [
            [f"{place} {text[:40]}", *(f"{one:.2f} ({score_of(float(one), embedder.scale):.2f})" for one in cosines)]
            for place, (text, cosines) in enumerate(zip(given, rows @ rows.T, strict=True), start=1)
        ]
        print_table(["", *map(str, range(1, len(given) + 1))], shown)

    return Answer(reports.Vectors(model=embedder.id, dimensions=embedder.dimensions, vectors=rows.tolist()), show)
