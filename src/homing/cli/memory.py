"""`homing memory`: remember, recall, forget."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, Question, SearchMode, Weaker, answers, checked, embed_waiting, group, piped
from homing.cli.language import text
from homing.cli.lazy import memory, reports
from homing.cli.output import confirm, note, print_hits, print_table, progress, say
from homing.errors import NotFound

if TYPE_CHECKING:
    from homing.operations import Call
    from homing.operations.hits import HitOut
    from homing.operations.memory import MemoryOut

app = group("memory", "Memory: remember, recall and forget texts.")

MAX_NUMBER = 1_000
"""The last number of the list that `forget` takes."""
NOTHING = 'nothing is remembered yet; begin with: homing memory remember "…"'
COLLECTIONS = "knowledge, observation, reflection or learning"
Session = Annotated[str | None, typer.Option("--session", help="Only what belongs to this session.")]


@app.command()
@answers("remember")
def remember(
    call: Call,
    text: Annotated[str | None, typer.Argument(help="The text to remember; without it, standard input.")] = None,
    collection: Annotated[str, typer.Option("--in", help=f"Where to keep it: {COLLECTIONS}.")] = "knowledge",
    session: Annotated[str, typer.Option("--session", help="The session it belongs to.")] = "",
    category: Annotated[str, typer.Option(help="A word to sort it by.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    entry_id: Annotated[str | None, typer.Option("--id", help="Its id; an entry with this id is replaced.")] = None,
) -> Answer:
    """Remember a text. It can be recalled as soon as the command ends."""
    given = {"collection": collection, "session_key": session, "category": category, "tags": tag, "id": entry_id}
    kept = piped('write it after the command, as in: homing memory remember "…"') if text is None else text
    entry = memory.remember(call, checked(memory.Remember, text=kept, **given))
    left = call.app.engine.close()

    def show() -> None:
        say("{one.collection} {one.id}", one=entry)
        if left:
            note("{left:#text} without a vector yet, found by words only (homing memory queue)", left=left)

    return Answer(entry, show)


@app.command()
@answers("recall")
def recall(
    call: Call,
    query: Question,
    collection: Annotated[
        list[str] | None, typer.Option("--in", help=f"Only in {COLLECTIONS}; may be repeated.")
    ] = None,
    session: Session = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many entries.")] = 5,
    max_distance: Annotated[float, typer.Option(help="Leave out what is farther away; 0 is no limit.")] = 0.0,
    mode: SearchMode = "hybrid",
    weaker: Weaker = False,
) -> Answer:
    """Recall what is relevant to a question, the best first."""
    given = {"session_key": session, "limit": limit, "max_distance": max_distance, "mode": mode, "weaker": weaker}
    found = memory.recall(call, checked(memory.Recall, query=query, collections=collection, **given))

    def place(hit: HitOut) -> str:
        return f"{hit.metadata['collection']} {hit.id}"

    return Answer(found, lambda: print_hits(found, place, "Nothing relevant is remembered."))


@app.command(name="list")
@answers("list_memories")
def list_entries(
    call: Call,
    collection: Annotated[str | None, typer.Argument(help=f"Only this collection: {COLLECTIONS}.")] = None,
    session: Session = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many entries.")] = 50,
    offset: Annotated[int, typer.Option(help="Skip this many entries.")] = 0,
) -> Answer:
    """List what is remembered, the latest first. `forget` takes the numbers that it shows."""
    asked = checked(memory.MemoryListing, collection=collection, session_key=session, limit=limit, offset=offset)
    found = memory.list_memories(call, asked)

    def show() -> None:
        # Columns that nobody has filled are left out; an id that is cut off cannot be handed to `forget`.
        columns = {
            "#": [str(number) for number in range(offset + 1, offset + 1 + len(found.entries))],
            "collection": [one.collection for one in found.entries],
            "session": [one.session_key for one in found.entries],
            "category": [one.category for one in found.entries],
            "tags": [" ".join(one.tags) for one in found.entries],
            "id": [one.id for one in found.entries],
            "text": [" ".join(one.text.split())[:200] for one in found.entries],
        }
        filled = {name: cells for name, cells in columns.items() if any(cells)}
        print_table([*filled], [*zip(*filled.values(), strict=True)], whole=("#", "id"), empty=NOTHING)
        total = sum(found.counts.values()) if collection is None else found.counts[collection]
        if session is None and offset + len(found.entries) < total:
            say("{shown} of {total}; --limit and --offset show the others", shown=len(found.entries), total=total)

    return Answer(found, show)


@app.command()
@answers("forget")
def forget(
    call: Call,
    ids: Annotated[list[str], typer.Argument(help="Ids, or the numbers that `homing memory list` shows.")],
    collection: Annotated[str | None, typer.Option("--in", help=f"Only in {COLLECTIONS}.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Forget what a number stands for without asking.")] = False,
) -> Answer:
    """Forget entries, by id or by number.

    What a number stands for is shown first: the list may have changed since it was printed.
    """
    if len(ids) > 1 and ids[0] in call.app.memory.collections:
        collection, *ids = ids
    asked = [checked(memory.Forget, id=one, collection=collection) for one in ids]
    numbered = _numbered(call, collection, [one for one in ids if one.isdecimal() and len(one) <= len(str(MAX_NUMBER))])
    if numbered and not yes:
        for number, entry in numbered.items():
            shown = " ".join(entry.text.split())[:200]
            note("{number}  {where}  {shown}", number=number, where=entry.collection, shown=shown)
        confirm("Forget these?")
    forgotten = 0
    for one in asked:
        if one.id in numbered:
            one = checked(memory.Forget, id=numbered[one.id].id, collection=numbered[one.id].collection)
        with suppress(NotFound):
            forgotten += memory.forget(call, one).forgotten
    if not forgotten:
        named = ", ".join(ids)
        raise NotFound(text("nothing has the id {named}; `homing memory list` shows ids and numbers", named=named))
    return Answer(memory.Forgotten(forgotten=forgotten), lambda: say("{count} forgotten", count=forgotten))


def _numbered(call: Call, collection: str | None, numbers: Sequence[str]) -> dict[str, MemoryOut]:
    """What numbers of the list stand for, unless there is an entry of that very id."""
    places = {one: int(one) for one in numbers if 0 < int(one) <= MAX_NUMBER}
    if not places:
        return {}
    names = call.app.memory.collections if collection is None else (collection,)
    known = {key for name in names for key in call.app.memory.get(name, [*places])}
    asked = checked(memory.MemoryListing, collection=collection, limit=max(places.values()))
    listed = memory.list_memories(call, asked).entries
    return {one: listed[at - 1] for one, at in places.items() if at <= len(listed) and one not in known}


@app.command()
@answers("homing.cli.reports:WorkQueue")
def queue(
    call: Call,
    retry: Annotated[bool, typer.Option("--retry", help="Try again to embed what was given up.")] = False,
) -> Answer:
    """Show which texts wait for a vector, and which were given up."""
    engine = call.app.engine
    retried = engine.work.retry_dead() if retry else 0
    if retry:
        embed_waiting(engine.work.waiting, engine.flush)
    found = reports.WorkQueue(retried=retried, backlog=engine.work.backlog(), dead_letters=engine.work.dead_letters())

    def show() -> None:
        waits = found.backlog
        if waits.waiting:
            say(
                "{one.waiting} waiting, {one.failing} of them after a failure; the oldest for {one.oldest:.0f} s",
                one=waits,
            )
        else:
            say("nothing waits for a vector")
        if retry:
            say("{count} tried again", count=retried)
        rows = []
        for one in found.dead_letters:
            lost = engine.store.texts(one.collection, [one.id]).get(one.id, "")
            rows.append((f"{one.collection} {one.id}", one.attempts, one.error, lost[:80]))
        if rows:
            print_table(("given up", "attempts", "error", "text"), rows)
            say("`homing memory queue --retry` tries them again")

    return Answer(found, show)


@app.command()
@answers("homing.cli.reports:MemoryReindexed")
def reindex(call: Call) -> Answer:
    """Embed texts without a vector. Texts that were given up are tried again."""
    engine = call.app.engine
    with progress("Checking") as step:
        queued = call.app.memory.reindex(step)
    done = reports.MemoryReindexed(queued=queued, waiting=embed_waiting(engine.work.waiting, engine.flush))
    said = "{queued} queued, {waiting} still waiting" if done.waiting else "{queued} embedded"
    return Answer(done, lambda: say(said, queued=queued, waiting=done.waiting))
