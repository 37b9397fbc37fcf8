"""`homing devices`: load a home, look at it, and ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json
from homing.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from homing.devices import Answer, DeviceRetriever
    from homing.devices.answer import Step
    from homing.devices.saved import SavedDevices

app = typer.Typer(help="The devices and commands that a sentence means.", no_args_is_help=True, rich_markup_mode=None)

HomeFile = Annotated[Path | None, typer.Option("--home", help="A home to ask instead of the loaded one.")]
RoomName = Annotated[str | None, typer.Option("--room", help="The room the speaker is in.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show how the sentence was read and why each device is there.")
]


@app.command()
def load(
    path: Annotated[Path, typer.Argument(help="JSON, JSONL, a Home Assistant export or a SmartThings device list.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Load a home. What was loaded before is replaced, and only what changed is indexed again."""
    with opened(data) as homing:
        changes, count = homing.devices.load(path), len(homing.devices.home.devices)
    if json:
        print_json(changes)
        return
    counts = {name: len(getattr(changes, name)) for name in ("added", "changed", "removed", "unchanged")}
    console().print(f"{count} devices: " + ", ".join(f"{n} {name}" for name, n in counts.items()))


@app.command(name="list")
def list_devices(
    room: Annotated[str | None, typer.Option("--room", help="Only devices in this room or on this floor.")] = None,
    home: HomeFile = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the devices of the home."""
    with _retriever(home, data) as devices:
        index = devices.home
    inside = index.in_place(room) if room else set(index.placed)
    if inside is None:
        known = ", ".join(place.name for place in index.rooms)
        raise NotFound(f"there is no room or floor {room!r} in this home; known: {known}")
    rows = [placed for device_id, placed in index.placed.items() if device_id in inside]
    if json:
        print_json([placed.device.model_dump(mode="json") for placed in rows])
        return
    from rich.table import Table

    table = Table("id", "name", "room", "type", "commands")
    for placed in rows:
        device = placed.device
        commands = ", ".join(command.id for command in device.commands) or ", ".join(device.members)
        table.add_row(device.id, " / ".join(device.names), placed.room or "", placed.type, commands)
    console().print(table)


@app.command()
def ask(
    sentence: Annotated[str, typer.Argument(help="What is said, in Chinese or English.")],
    room: RoomName = None,
    home: HomeFile = None,
    explain: Explain = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show the devices a sentence means, and the command for each. Nothing is carried out."""
    if not sentence.strip():
        raise InvalidArgument('the sentence is empty; say what to do, e.g. homing devices ask "打开客厅的灯"')
    with _retriever(home, data) as devices:
        answer = devices.ask(sentence, room=room)
    if json:
        print_json(answer.to_dict())
    else:
        _show(answer, explain=explain)


@app.command()
def repl(room: RoomName = None, home: HomeFile = None, explain: Explain = False, data: Data = None) -> None:
    """Ask one sentence after another. "It", "that one" and answers to questions are understood; an empty line ends."""
    state = None
    out = console()
    with _retriever(home, data) as devices:
        while True:
            try:
                sentence = out.input("[bold]> [/bold]").strip()
            except (EOFError, KeyboardInterrupt):
                break
            if not sentence:
                break
            answer = devices.ask(sentence, state=state, room=room)
            state = answer.state
            _show(answer, explain=explain)


@contextmanager
def _retriever(home: Path | None, data: Path | None) -> Iterator[DeviceRetriever | SavedDevices]:
    """What answers about a home of a file, or about the one that was loaded."""
    if home is None:
        with opened(data) as homing:
            if not homing.devices.home.placed:
                raise NotFound("no home is loaded; load one with homing devices load FILE, or pass --home FILE")
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


def _show(answer: Answer, *, explain: bool) -> None:
    from rich.text import Text

    out = console()
    if answer.degraded:
        out.print(Text(f"commands were matched by their words only ({answer.reason})", "yellow"))
    for step in answer.steps:
        if explain:
            fields = step.ir.model_dump(mode="json", exclude_defaults=True, exclude={"raw"})
            out.print(Text(" · ".join(f"{name}={value}" for name, value in fields.items()), "dim"))
        _show_candidates(step, explain=explain)
        if step.question:
            out.print(Text.assemble((f"{step.hint} ", "bold yellow"), step.question))


def _show_candidates(step: Step, *, explain: bool) -> None:
    from rich.table import Table

    if not step.candidates:
        return
    table = Table("device", "name", "room", "command", "score", "reasons")
    for column in table.columns[:5]:
        column.no_wrap, column.overflow = True, "fold"
    for candidate in step.candidates:
        device = candidate.device
        command = candidate.command.id if candidate.command else "–"
        if candidate.value is not None:
            value = candidate.value
            command += f" = {value:g}" if isinstance(value, float) else f" = {value}"
        elif candidate.change is not None:
            command += f" {candidate.change:+g}"
        why = ", ".join(candidate.reasons) + (f"\n{candidate.explanation}" if explain else "")
        table.add_row(device.id, device.name, device.room or "", command, f"{candidate.score:.2f}", why)
    console().print(table)
