"""`homing search` and `homing embed`: ask everything, or a folder of text files; turn texts into vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import (
    Answer,
    Data,
    Question,
    SearchMode,
    Weaker,
    answers,
    calling,
    checked,
    mode_of,
    piped,
    required,
)
from homing.cli.language import text
from homing.cli.lazy import reports
from homing.cli.output import console, note, print_hits, print_left_out, print_table, progress, say
from homing.errors import HomingError, InvalidArgument

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.cli.reports import FolderSearchOut
    from homing.operations.hits import HitOut


NOTHING = "nothing is kept there yet; begin with homing memory remember, homing documents import or homing skills scan"


@answers("search_everything", "homing.cli.reports:FolderSearchOut")
def search(
    query: Question,
    folder: Annotated[
        Path | None, typer.Argument(help="A folder with .md or .txt files; without one, everything in the data folder.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many matches of a kind.")] = 5,
    mode: SearchMode = "hybrid",
    min_score: Annotated[
        float | None, typer.Option(help="Leave out semantic matches of a folder that score lower.")
    ] = None,
    weaker: Weaker = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each leg ranked a passage.")] = False,
    data: Data = None,
) -> Answer:
    """Search everything at once, or a folder of text files.

    A folder becomes a project of the data folder that follows it: the first search reads all of its files, later ones
    only those that changed. Without a folder, skills, documents, memories and devices are searched.
    """
    if not query.strip():
        raise InvalidArgument(text('the query is empty; say what to look for, e.g. homing search "孤独的感觉" novels/'))
    if folder is None:
        if mode_of(mode) != "hybrid" or min_score is not None:
            raise InvalidArgument(text("--mode and --min-score are for a folder; name one, or leave them out"))
        return _everything(query, limit, data, weaker=weaker, explain=explain)
    from dataclasses import replace

    from homing.engine.search import cut
    from homing.operations.hits import search_out

    with calling(data) as call, _loading_the_model(call.app):
        app, index = call.app, call.app.folder(folder)
        with progress("Indexing") as step:
            refreshed = index.refresh(step)
        options = replace(app.search_options, limit=limit, mode=mode_of(mode), min_score=min_score)
        passages = index.search(query, options)
        answer = search_out("folder", query, passages if weaker or min_score is not None else cut(passages))
    found = reports.FolderSearchOut(**dict(answer), index=refreshed)
    return Answer(found, lambda: _show(found, explain=explain))


def _everything(query: str, limit: int, data: Path | None, *, weaker: bool, explain: bool) -> Answer:
    from homing.operations.search import SearchEverything, search_everything

    with calling(data) as call:
        found = search_everything(call, checked(SearchEverything, query=query, limit=limit, weaker=weaker))
        is_empty = not call.app.store.collections()

    def show() -> None:
        from rich.text import Text

        answered = [group for group in found.groups if group.hits or group.degraded]
        if not answered:
            say("Nothing found in {folder}.", folder=call.app.settings.data)
            if is_empty:
                say(NOTHING)
            print_left_out(sum(group.left_out for group in found.groups), shown=False)
        for group in sorted(answered, key=lambda one: -max((hit.score or 0 for hit in one.hits), default=0)):
            console().print(Text(text(group.source), "bold"))
            print_hits(group, _place, "–", length=240, explain=explain)

    return Answer(found, show)


def _place(hit: HitOut) -> str:
    """Where a match of any kind is."""
    known = hit.metadata
    if "document_id" in known:
        return f"{known.get('project_id', '')} / {known['document_id']}"
    return str(known.get("name") or f"{known.get('collection', '')} {hit.id}".strip())


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
        note("skipped {path}: {reason}", path=skipped.path, reason=skipped.reason)

    def place(hit: HitOut) -> str:
        return f"{hit.metadata['path']}:{hit.metadata['line']}"

    print_hits(found, place, "Nothing found.", length=240, explain=explain)
    message = text(
        "{hits:#passage} from {files:#file}, {mode}, {took:.0f} ms",
        hits=len(found.hits),
        files=index.added + index.changed + index.unchanged,
        mode=text(found.mode),
        took=found.took_ms,
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

    given = texts or [line for line in piped("write texts after the command").splitlines() if line.strip()]
    if not given:
        raise InvalidArgument(text("there are only empty lines; give texts as arguments or lines on standard input"))
    embedder = required(resolve_embedder(load().settings))
    rows = embedder.embed(given, kind="query" if query else "document")

    def show() -> None:
        say("{model}: cosine (score) of each pair", model=embedder.id)
        shown = [
            [f"{place} {said[:40]}", *(f"{one:.2f} ({score_of(float(one), embedder.scale):.2f})" for one in cosines)]
            for place, (said, cosines) in enumerate(zip(given, rows @ rows.T, strict=True), start=1)
        ]
        print_table(["", *map(str, range(1, len(given) + 1))], shown)

    return Answer(reports.Vectors(model=embedder.id, dimensions=embedder.dimensions, vectors=rows.tolist()), show)
