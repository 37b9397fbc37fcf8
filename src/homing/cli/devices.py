"""`homing devices`: load a home, list its devices, and ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.calls import Answer, Data, answers, calling, checked, group
from homing.cli.language import text
from homing.cli.lazy import devices
from homing.cli.output import console, print_table, say
from homing.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from homing.devices import DeviceRetriever
    from homing.devices.saved import SavedDevices
    from homing.operations import Call
    from homing.operations.devices import CandidateOut, DeviceAnswerOut

app = group("devices", "Find the devices and commands that a sentence means.")

HomeFile = Annotated[Path | None, typer.Option("--home", help="Use the home in this file instead of the loaded one.")]
RoomName = Annotated[str | None, typer.Option("--room", help="The room the speaker is in.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show how the sentence was understood, and why each device was chosen.")
]


@app.command()
@answers("homing.operations.devices:HomeChanged")
def load(
    call: Call,
    path: Annotated[Path, typer.Argument(help="JSON, JSONL, a Home Assistant export or a SmartThings device list.")],
) -> Answer:
    """Load a home. It replaces the one that was loaded before."""
    changes = devices.HomeChanged.of(call.app.devices.load(path))

    def show() -> None:
        counts = {name: len(getattr(changes, name)) for name in ("added", "changed", "removed", "unchanged")}
        say(
            "{total:#device}: {added} added, {changed} changed, {removed} removed, {unchanged} unchanged",
            total=len(call.app.devices.home.devices),
            **counts,
        )

    return Answer(changes, show)


@app.command(name="list")
@answers("get_home")
def list_devices(
    room: Annotated[str | None, typer.Option("--room", help="Only devices in this room or on this floor.")] = None,
    home: HomeFile = None,
    data: Data = None,
) -> Answer:
    """List the devices of the home."""
    with _home(home, data) as chosen:
        found = devices.home_out(chosen.home, checked(devices.HomeListing, room=room))
    rows = [
        (one.id, " / ".join([one.name, *one.aliases]), one.room or "", one.type, ", ".join(one.commands or one.members))
        for one in found.devices
    ]
    return Answer(found, lambda: print_table(("id", "name", "room", "type", "commands"), rows))


@app.command()
@answers("ask_devices")
def ask(
    sentence: Annotated[str, typer.Argument(help="What is said, in Chinese or English.")],
    room: RoomName = None,
    home: HomeFile = None,
    explain: Explain = False,
    data: Data = None,
) -> Answer:
    """Show which devices a sentence means. Nothing is carried out.

    For each device it shows the command, or the question to put to the speaker.
    """
    asked = checked(devices.DeviceAsk, text=sentence, room=room)
    with _home(home, data) as chosen:
        answer = devices.ask_home(chosen, asked)
    return Answer(answer, lambda: _show(answer, explain=explain))


@app.command()
def repl(room: RoomName = None, home: HomeFile = None, explain: Explain = False, data: Data = None) -> None:
    """Talk to the home, one sentence after another.

    "It", "that one" and answers to questions are understood. An empty line ends the conversation.
    """
    state: dict[str, Any] | None = None
    with _home(home, data) as chosen:
        while True:
            try:
                sentence = console().input("[bold]> [/bold]").strip()
            except (EOFError, KeyboardInterrupt):
                break
            if not sentence:
                break
            answer = devices.ask_home(chosen, checked(devices.DeviceAsk, text=sentence, state=state, room=room))
            state = answer.state.model_dump()
            _show(answer, explain=explain)


@app.command(name="eval")
@answers("homing.devices.evaluation:Evaluation[]")
def measure(
    homes: Annotated[
        list[Path], typer.Argument(help="Folders with a home and eval.jsonl, its sentences and what they mean.")
    ],
) -> Answer:
    """Measure how well sentences to a home are understood.

    `exact` counts sentences of which device, command and value are right; `wrong acts` are those that would move a
    device they do not mean, or without being asked first.
    """
    return evaluate_homes(homes)


def evaluate_homes(homes: list[Path]) -> Answer:
    """Asks the sentences of homes, and shows a table and what was missed."""
    from homing.devices.evaluation import evaluate

    if not homes:
        raise InvalidArgument(text("name the folders of the homes, e.g. homing devices eval homes/villa"))
    results = [evaluate(home) for home in homes]

    def show() -> None:
        rows = []
        for one in results:
            shares = (f"{share:.4f}" for share in (one.exact, one.wrong, one.refused, one.direction))
            rows.append((one.name, one.sentences, *shares, one.wrong_acts))
            rows += [(f"  {kind}", "", f"{share:.4f}", "", "", "", "") for kind, share in one.kinds.items() if kind]
        print_table(("home", "sentences", "exact", "wrong device", "not acted", "right direction", "wrong acts"), rows)
        for one in results:
            for miss in one.misses:
                missed = "{name}: {miss.sentence} → {miss.found}, expected {miss.expected} {miss.hints}"
                say(missed, name=one.name, miss=miss)

    return Answer(results, show)


@contextmanager
def _home(home: Path | None, data: Path | None) -> Iterator[DeviceRetriever | SavedDevices]:
    """The home of a file, or the one that was loaded."""
    if home is None:
        with calling(data) as call:
            if not call.app.devices.home.placed:
                raise NotFound(text("no home is loaded; load one with `homing devices load FILE`, or pass --home FILE"))
            yield call.app.devices
        return
    from homing.config import load as load_settings
    from homing.database.lazy import LazyDatabase
    from homing.devices import DeviceRetriever, load_home
    from homing.resolve import named_chat, open_models

    read, settings = load_home(home), load_settings().settings
    with closing(LazyDatabase(settings.database)) as database:
        embedder = open_models(settings, database).embedder_to_keep()
        yield DeviceRetriever(
            read.devices,
            read.rooms,
            embedder=embedder,
            chat=named_chat(settings),
            deadline=settings.devices.deadline,
            vector_deadline=settings.search.deadline,
        )


def _show(answer: DeviceAnswerOut, *, explain: bool) -> None:
    from rich.text import Text

    from homing.devices.query import QueryIR

    out = console()
    if answer.degraded:
        said = text("The model is not available: commands were matched by words only ({why}).", why=answer.reason)
        out.print(Text(said, "yellow"))
    for step in answer.steps:
        if explain:
            read = QueryIR.model_validate(step.ir).model_dump(mode="json", exclude_defaults=True, exclude={"raw"})
            out.print(Text(" · ".join(f"{name}={value}" for name, value in read.items()), "dim"))
        rows = [
            (one.id, one.name, one.room or "", _command(one), f"{one.score:.2f}", _reasons(one, explain))
            for one in step.candidates
        ]
        if rows:
            headings = ("device", "name", "room", "command", "score", "reasons")
            print_table(headings, rows, whole=headings[:5])
        if explain or step.decision in ("confirm", "answer"):
            out.print(Text(f"{text(step.decision)} ({text(step.ir['mood'])})", "bold"))
        if step.question:
            out.print(Text.assemble((f"{step.hint} ", "bold yellow"), step.question))


def _command(one: CandidateOut) -> str:
    name = one.command or "–"
    if one.value is not None:
        return f"{name} = {one.value:g}" if isinstance(one.value, float) else f"{name} = {one.value}"
    return name if one.change is None else f"{name} {one.change:+g}"


def _reasons(one: CandidateOut, explain: bool) -> str:
    return ", ".join(one.reasons) + (f"\n{one.explanation}" if explain else "")
