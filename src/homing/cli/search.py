"""`homing search`: look through a folder of text files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.found import as_json, mode_of
from homing.cli.options import Data, Json
from homing.cli.output import console, excerpt, print_json, progress
from homing.errors import HomingError, InvalidArgument, NotFound, StoreError

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.documents.folders import FollowedFolder, Refreshed
    from homing.records import Hit, Retrieved

INDEX = ".homing"
"""The folder inside the searched folder that holds its index; it may be deleted at any time."""


def search_folder(
    query: Annotated[str, typer.Argument(help="What to look for, in Chinese or English.")],
    folder: Annotated[Path, typer.Argument(help="A folder with .md or .txt files.")] = Path(),
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many passages at most.")] = 5,
    mode: Annotated[str, typer.Option(help="hybrid, semantic or keyword.")] = "hybrid",
    min_score: Annotated[float | None, typer.Option(help="Leave out semantic matches scored below this.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show where each passage ranked in both legs.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Find passages in a folder of text files.

    The first search indexes the folder (into .homing inside it, or into --data); later ones only what changed.
    """
    if not query.strip():
        raise InvalidArgument('the query is empty; say what to look for, e.g. homing search "孤独的感觉" novels/')
    from dataclasses import replace

    from homing.app import open_app

    with open_app(data or _index_folder(folder)) as app, _loading_the_model(app):
        index = _index(app, folder)
        with progress("Indexing", quiet=json) as step:
            refreshed = index.refresh(step)
        options = replace(app.search_options, limit=limit, mode=mode_of(mode), min_score=min_score)
        found = index.search(query, options)
    if json:
        print_json({**as_json(query, found), "index": refreshed})
    else:
        _show(query, found, refreshed, explain=explain)


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


def _show(query: str, found: Retrieved, refreshed: Refreshed, *, explain: bool) -> None:
    from rich.text import Text

    out = console()
    if found.notice is not None:
        out.print(Text(str(found.notice), "yellow"))
    for skipped in refreshed.skipped:
        console(stderr=True).print(Text(f"skipped {skipped.path}: {skipped.reason}", "yellow"))
    if not found:
        out.print("没有找到相关内容 / Nothing found.")
    for hit in found:
        _show_hit(query, hit, explain=explain)
    files = refreshed.added + refreshed.changed + refreshed.unchanged
    milliseconds = found.timings.get("total_ms", 0.0)
    out.print(Text(f"{len(found)} of {files} files, {found.mode}, {milliseconds:.0f} ms", "dim"))


def _show_hit(query: str, hit: Hit, *, explain: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    score = "  –  " if hit.score is None else f"{hit.score:.2f}"
    out.print(Text.assemble((f"{score}  ", "bold green"), (f"{hit.metadata['path']}:{hit.metadata['line']}", "cyan")))
    out.print(Padding(excerpt(query, hit, 240), (0, 0, 0, 6)), soft_wrap=False)
    if explain:
        for leg in hit.legs:
            told = f"{leg.leg}: rank {leg.rank}, raw {leg.raw:.3f}, weight {leg.weight:g}, share {leg.share:.4f}"
            out.print(Padding(Text(told, "dim"), (0, 0, 0, 6)))
