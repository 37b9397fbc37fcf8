"""`homing memory`: remember, recall, forget."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Data, Json, Question, SearchMode, calling, checked, group, opened, work_through
from homing.cli.output import console, counted, note, print_hits, print_json, print_table, progress, say
from homing.errors import NotFound

if TYPE_CHECKING:
    from homing.engine import Engine
    from homing.operations.memory import MemoryList

app = group("Memory: remember, recall and forget texts.")

COLLECTIONS = "knowledge, observation, reflection or learning"
Session = Annotated[str | None, typer.Option("--session", help="Only what belongs to this session.")]


@app.command()
def remember(
    text: Annotated[str | None, typer.Argument(help="The text to remember; without it, standard input.")] = None,
    collection: Annotated[str, typer.Option("--in", help=f"Where to keep it: {COLLECTIONS}.")] = "knowledge",
    session: Annotated[str, typer.Option("--session", help="The session it belongs to.")] = "",
    category: Annotated[str, typer.Option(help="A word to sort it by.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    entry_id: Annotated[str | None, typer.Option("--id", help="Its id; an entry with this id is replaced.")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Remember a text. It can be recalled as soon as the command ends."""
    from homing.operations.memory import Remember
    from homing.operations.memory import remember as operation

    given = {"collection": collection, "session_key": session, "category": category, "tags": tag, "id": entry_id}
    asked = checked(Remember, text=sys.stdin.read() if text is None else text, **given)
    with calling(data) as call:
        entry = operation(call, asked)
        left = call.app.engine.close()
    if json:
        print_json(entry)
        return
    say(f"{entry.collection} {entry.id}")
    if left:
        note(f"{counted(left, 'text')} without a vector yet, found by words only (homing memory queue)")


@app.command()
def recall(
    query: Question,
    collection: Annotated[
        list[str] | None, typer.Option("--in", help=f"Only in {COLLECTIONS}; may be repeated.")
    ] = None,
    session: Session = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many entries.")] = 5,
    max_distance: Annotated[float, typer.Option(help="Leave out what is farther away; 0 is no limit.")] = 0.0,
    mode: SearchMode = "hybrid",
    data: Data = None,
    json: Json = False,
) -> None:
    """Recall what is relevant to a question, the nearest first."""
    from homing.operations.memory import Recall
    from homing.operations.memory import recall as operation

    given = {"session_key": session, "limit": limit, "max_distance": max_distance, "mode": mode}
    asked = checked(Recall, query=query, collections=collection, **given)
    with calling(data) as call:
        found = operation(call, asked)
    if json:
        print_json(found)
    else:
        nothing = "没有相关的记忆 / Nothing relevant is remembered."
        print_hits(found, lambda hit: f"{hit.metadata['collection']} {hit.id}", nothing)


@app.command(name="list")
def list_entries(
    collection: Annotated[
        str | None, typer.Argument(help=f"The collection: {COLLECTIONS}. Without it, the size of each is shown.")
    ] = None,
    session: Session = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many entries.")] = 50,
    offset: Annotated[int, typer.Option(help="Skip this many entries.")] = 0,
    data: Data = None,
    json: Json = False,
) -> None:
    """List what is remembered, the latest first."""
    from homing.operations.memory import MemoryListing, list_memories

    asked = checked(MemoryListing, collection=collection, session_key=session, limit=limit, offset=offset)
    with calling(data) as call:
        found = list_memories(call, asked)
    if json:
        print_json(found)
    elif collection is None and session is None:
        print_table(("collection", "entries"), list(found.counts.items()))
    else:
        _show_entries(found)


@app.command()
def forget(
    collection: Annotated[str, typer.Argument(help=f"The collection: {COLLECTIONS}.")],
    ids: Annotated[list[str], typer.Argument(help="The ids that `remember` and `list` print.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Forget entries."""
    from homing.operations.memory import Forget, Forgotten
    from homing.operations.memory import forget as operation

    asked = [checked(Forget, id=one, collection=collection) for one in ids]
    forgotten, missing = 0, []
    with calling(data) as call:
        for one in asked:
            try:
                forgotten += operation(call, one).forgotten
            except NotFound:
                missing.append(one.id)
    if not forgotten:
        hint = f"`homing memory list {collection}` shows the ids"
        raise NotFound(f"nothing in {collection} has the id {', '.join(missing)}; {hint}")
    print_json(Forgotten(forgotten=forgotten)) if json else say(f"{forgotten} forgotten")


@app.command()
def queue(
    retry: Annotated[bool, typer.Option("--retry", help="Try again to embed what was given up.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show which texts wait for a vector, and which were given up."""
    from homing.cli.reports import WorkQueue

    with opened(data) as homing:
        engine = homing.engine
        retried = engine.work.retry_dead() if retry else 0
        if retry:
            _embed(engine, quiet=json)
        found = WorkQueue(retried=retried, backlog=engine.work.backlog(), dead_letters=engine.work.dead_letters())
        texts = [engine.store.texts(one.collection, [one.id]).get(one.id, "") for one in found.dead_letters]
    if json:
        print_json(found)
        return
    backlog = found.backlog
    say(f"{backlog.waiting} waiting, {backlog.failing} of them after a failure; the oldest for {backlog.oldest:.0f} s")
    if retry:
        say(f"{retried} tried again")
    if found.dead_letters:
        rows = [
            (f"{one.collection} {one.id}", one.attempts, one.error, text[:80])
            for one, text in zip(found.dead_letters, texts, strict=True)
        ]
        print_table(("given up", "attempts", "error", "text"), rows)
        say("`homing memory queue --retry` tries them again")


@app.command()
def reindex(data: Data = None, json: Json = False) -> None:
    """Embed texts without a vector. Texts that were given up are tried again."""
    from homing.cli.reports import MemoryReindexed

    with opened(data) as homing:
        with progress("Checking", quiet=json) as step:
            queued = homing.memory.reindex(step)
        done = MemoryReindexed(queued=queued, waiting=_embed(homing.engine, quiet=json))
    if json:
        print_json(done)
    else:
        say(f"{queued} queued, {done.waiting} still waiting" if done.waiting else f"{queued} embedded")


def _embed(engine: Engine, *, quiet: bool) -> int:
    with progress("Embedding", quiet=quiet) as step:
        return work_through(engine.work.waiting, engine.flush, step)


def _show_entries(found: MemoryList) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    # An id that is cut off cannot be handed to `forget`.
    table.add_column("id", min_width=max((len(entry.id) for entry in found.entries), default=2))
    for name in ("session", "category", "tags", "text"):
        table.add_column(name)
    for entry in found.entries:
        shown = " ".join(entry.text.split())[:200]
        row = (entry.id, entry.session_key, entry.category, " ".join(entry.tags), shown)
        table.add_row(*map(Text, row))
    console().print(table)
