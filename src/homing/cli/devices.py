"""`homing devices`: load a home, list its devices, and ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.calls import Data, Json, checked, group, opened
from homing.cli.output import console, counted, print_json, print_table, say
from homing.errors import NotFound

if TYPE_CHECKING:
    from homing.devices import DeviceRetriever
    from homing.devices.saved import SavedDevices
    from homing.operations.devices import CandidateOut, DeviceAnswerOut, StepOut

app = group("Find the devices and commands that a sentence means.")

HomeFile = Annotated[Path | None, typer.Option("--home", help="Use the home in this file instead of the loaded one.")]
RoomName = Annotated[str | None, typer.Option("--room", help="The room the speaker is in.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show how the sentence was understood, and why each device was chosen.")
]


@app.command()
def load(
    path: Annotated[Path, typer.Argument(help="JSON, JSONL, a Home Assistant export or a SmartThings device list.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Load a home. It replaces the one that was loaded before."""
    from homing.operations.devices import HomeChanged

    with opened(data) as homing:
        changes, count = HomeChanged.of(homing.devices.load(path)), len(homing.devices.home.devices)
    if json:
        print_json(changes)
        return
    counts = {name: len(getattr(changes, name)) for name in ("added", "changed", "removed", "unchanged")}
    say(f"{counted(count, 'device')}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))


@app.command(name="list")
def list_devices(
    room: Annotated[str | None, typer.Option("--room", help="Only devices in this room or on this floor.")] = None,
    home: HomeFile = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the devices of the home."""
    from homing.operations.devices import HomeListing, home_out

    with _home(home, data) as devices:
        found = home_out(devices.home, checked(HomeListing, room=room))
    if json:
        print_json(found)
        return
    rows = [
        (
            one.id,
            " / ".join([one.name, *one.aliases]),
            one.room or "",
            one.type,
            ", ".join(one.commands or one.members),
        )
        for one in found.devices
    ]
    print_table(("id", "name", "room", "type", "commands"), rows)


@app.command()
def ask(
    sentence: Annotated[str, typer.Argument(help="What is said, in Chinese or English.")],
    room: RoomName = None,
    home: HomeFile = None,
    explain: Explain = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show which devices a sentence means. Nothing is carried out.

    For each device it shows the command, or the question to put to the speaker.
    """
    from homing.operations.devices import DeviceAsk, ask_home

    asked = checked(DeviceAsk, text=sentence, room=room)
    with _home(home, data) as devices:
        answer = ask_home(devices, asked)
    if json:
        print_json(answer)
    else:
        _show(answer, explain=explain)


@app.command()
def repl(room: RoomName = None, home: HomeFile = None, explain: Explain = False, data: Data = None) -> None:
    """Talk to the home, one sentence after another.

    "It", "that one" and answers to questions are understood. An empty line ends the conversation.
    """
    from homing.operations.devices import DeviceAsk, ask_home

    state: dict[str, Any] | None = None
    with _home(home, data) as devices:
        while True:
            try:
                sentence = console().input("[bold]> [/bold]").strip()
            except (EOFError, KeyboardInterrupt):
                break
            if not sentence:
                break
            answer = ask_home(devices, checked(DeviceAsk, text=sentence, state=state, room=room))
            state = answer.state.model_dump()
            _show(answer, explain=explain)


@contextmanager
def _home(home: Path | None, data: Path | None) -> Iterator[DeviceRetriever | SavedDevices]:
    """The home of a file, or the one that was loaded."""
    if home is None:
        with opened(data) as homing:
            if not homing.devices.home.placed:
                raise NotFound("no home is loaded; load one with `homing devices load FILE`, or pass --home FILE")
            yield homing.devices
        return
    from homing.config import load as load_settings
    from homing.database.lazy import LazyDatabase
    from homing.devices import DeviceRetriever, load_home
    from homing.resolve import open_models

    read, settings = load_home(home), load_settings().settings
    with closing(LazyDatabase(settings.database)) as database:
        embedder = open_models(settings, database).embedder_to_keep()
        yield DeviceRetriever(read.devices, read.rooms, embedder=embedder, vector_deadline=settings.search.deadline)


def _show(answer: DeviceAnswerOut, *, explain: bool) -> None:
    from rich.text import Text

    from homing.devices.query import QueryIR

    out = console()
    if answer.degraded:
        out.print(Text(f"The model is not available: commands were matched by words only ({answer.reason}).", "yellow"))
    for step in answer.steps:
        if explain:
            read = QueryIR.model_validate(step.ir).model_dump(mode="json", exclude_defaults=True, exclude={"raw"})
            out.print(Text(" · ".join(f"{name}={value}" for name, value in read.items()), "dim"))
        _show_candidates(step, explain=explain)
        if step.question:
            out.print(Text.assemble((f"{step.hint} ", "bold yellow"), step.question))


def _show_candidates(step: StepOut, *, explain: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    if not step.candidates:
        return
    table = Table("device", "name", "room", "command", "score", "reasons")
    for column in table.columns[:5]:
        column.no_wrap, column.overflow = True, "fold"
    for one in step.candidates:
        why = ", ".join(one.reasons) + (f"\n{one.explanation}" if explain else "")
        row = (one.id, one.name, one.room or "", _command(one), f"{one.score:.2f}", why)
        table.add_row(*map(Text, row))
    console().print(table)


def _command(one: CandidateOut) -> str:
    name = one.command or "–"
    if one.value is not None:
        return f"{name} = {one.value:g}" if isinstance(one.value, float) else f"{name} = {one.value}"
    return name if one.change is None else f"{name} {one.change:+g}"
