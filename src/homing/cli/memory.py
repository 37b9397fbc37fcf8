"""`homing memory`: remember, recall, forget."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.found import as_json, mode_of
from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, excerpt, print_json, progress
from homing.cli.waiting import work_through
from homing.errors import NotFound

if TYPE_CHECKING:
    from homing.engine import Engine
    from homing.records import Retrieved

app = typer.Typer(help="Memory: remember, recall, forget.", no_args_is_help=True)

Collection = Annotated[str, typer.Argument(help="knowledge, observation, reflection or learning.")]
Session = Annotated[str | None, typer.Option("--session", help="Only what belongs to this session.")]


@app.callback()
def group() -> None:
    """Memory: remember, recall, forget."""


@app.command()
def remember(
    text: Annotated[str | None, typer.Argument(help="What to remember; without it, standard input.")] = None,
    collection: Annotated[
        str, typer.Option("--in", help="knowledge, observation, reflection or learning.")
    ] = "knowledge",
    session: Annotated[str, typer.Option("--session", help="The session it belongs to.")] = "",
    category: Annotated[str, typer.Option(help="A word to sort it by.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="May be given several times.")] = None,
    entry_id: Annotated[str | None, typer.Option("--id", help="Replaces what has this id.")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Remember a text. When the command ends it can be recalled by meaning and by words."""
    with opened(data) as homing:
        entry = homing.memory.remember(
            collection,
            sys.stdin.read() if text is None else text,
            session_key=session,
            category=category,
            tags=tag or (),
            entry_id=entry_id,
        )
        left = homing.engine.close()
    if json:
        print_json({"entry": entry, "waiting": left})
        return
    console().print(f"{entry.collection} {entry.id}", markup=False)
    if left:
        console(stderr=True).print(f"{left} texts wait for the embedding model; words find them (homing memory queue)")


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="A question, in Chinese or English.")],
    collection: Annotated[list[str] | None, typer.Option("--in", help="Only this collection; may be repeated.")] = None,
    session: Session = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="How many at most.")] = None,
    max_distance: Annotated[float | None, typer.Option(help="Leave out what is farther; 0 is off.")] = None,
    mode: Annotated[str, typer.Option(help="hybrid, semantic or keyword.")] = "hybrid",
    data: Data = None,
    json: Json = False,
) -> None:
    """Recall what a question is about, nearest first."""
    given = {"limit": limit, "max_distance": max_distance, "session_key": session, "mode": mode_of(mode)}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if collection:
        changes["collections"] = tuple(collection)
    with opened(data) as homing:
        found = homing.memory.recall(query, **changes)
    if json:
        print_json(as_json(query, found))
    else:
        _show(query, found)


@app.command(name="list")
def list_entries(
    collection: Annotated[str | None, typer.Argument(help="A collection; without it, how much each holds.")] = None,
    session: Session = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 20,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show what is remembered, the latest first."""
    from rich.table import Table

    with opened(data) as homing:
        memory = homing.memory
        if collection is None:
            counts = {name: memory.count(name) for name in memory.collections}
            table = Table("collection", "entries")
            for name, count in counts.items():
                table.add_row(name, str(count))
            print_json(counts) if json else console().print(table)
            return
        entries = memory.list(collection, session_key=session, limit=limit)
    if json:
        print_json(entries)
        return
    table = Table()
    # An id that is cut off cannot be handed to `forget`.
    table.add_column("id", min_width=max((len(entry.id) for entry in entries), default=2))
    for name in ("session", "category", "tags", "text"):
        table.add_column(name)
    for entry in entries:
        shown = " ".join(entry.text.split())
        table.add_row(entry.id, entry.session_key, entry.category, " ".join(entry.tags), shown[:200])
    console().print(table)


@app.command()
def forget(
    collection: Collection,
    ids: Annotated[list[str], typer.Argument(help="The ids that `remember` and `list` print.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Forget entries with their vectors."""
    with opened(data) as homing:
        forgotten = homing.memory.forget(collection, ids)
    if not forgotten:
        raise NotFound(
            f"nothing in {collection} has the id {', '.join(ids)}; homing memory list {collection} shows them"
        )
    print_json({"forgotten": forgotten}) if json else console().print(f"{forgotten} forgotten")


@app.command()
def queue(
    retry: Annotated[bool, typer.Option("--retry", help="Try again what was given up.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show what waits to be embedded, and what was given up."""
    from rich.table import Table
    from rich.text import Text

    with opened(data) as homing:
        engine = homing.engine
        retried = engine.work.retry_dead() if retry else 0
        if retry:
            with progress("Embedding", quiet=json) as step:
                _embed(engine, step)
        backlog, letters = engine.work.backlog(), engine.work.dead_letters()
        texts = [engine.store.texts(one.collection, [one.id]).get(one.id, "") for one in letters]
    if json:
        print_json({"retried": retried, "backlog": backlog, "dead_letters": letters})
        return
    out = console()
    out.print(f"{backlog.waiting} waiting ({backlog.failing} failed before, the oldest for {backlog.oldest:.0f} s)")
    if retry:
        out.print(f"{retried} tried again")
    if letters:
        table = Table("given up", "after", "error", "text")
        for letter, text in zip(letters, texts, strict=True):
            source = f"{letter.collection} {letter.id}"
            table.add_row(source, f"{letter.attempts} tries", Text(letter.error), Text(text[:80]))
        out.print(table)
        out.print("homing memory queue --retry tries them again")


@app.command()
def reindex(data: Data = None, json: Json = False) -> None:
    """Embed what has no vector, also what was given up."""
    with opened(data) as homing:
        with progress("Looking", quiet=json) as step:
            queued = homing.memory.reindex(step)
        with progress("Embedding", quiet=json) as step:
            left = _embed(homing.engine, step)
    if json:
        print_json({"queued": queued, "waiting": left})
    else:
        console().print(f"{queued} queued, {left} left" if left else f"{queued} queued and embedded")


def _embed(engine: Engine, step: Callable[[int, int], None]) -> int:
    return work_through(engine.work.waiting, engine.flush, step)


def _show(query: str, found: Retrieved) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    if found.notice is not None:
        out.print(Text(str(found.notice), "yellow"))
    if not found:
        out.print("没有相关的记忆 / Nothing is remembered about that.")
    for hit in found:
        score = "  –  " if hit.score is None else f"{hit.score:.2f}"
        out.print(Text.assemble((f"{score}  ", "bold green"), (f"{hit.collection} {hit.id}", "cyan")))
        out.print(Padding(excerpt(query, hit, 400), (0, 0, 0, 6)), soft_wrap=False)
