"""The home, and what a sentence means in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, RootModel, ValidationError

from homing.errors import NotFound
from homing.operations.models import Input, Name, Output, Query
from homing.operations.operation import Call, Tool, operation
from homing.records import Mode

if TYPE_CHECKING:
    from homing.devices import DeviceRetriever
    from homing.devices.answer import DialogueState
    from homing.devices.home import Home
    from homing.devices.query import QueryIR
    from homing.devices.saved import SavedDevices

TAG = "devices"
Decision = Literal["act", "confirm", "ask", "answer", "refuse"]
NO_HOME = "还没有设置家居 / No home is loaded; load one with: homing devices load FILE"

EXAMPLE = {
    "devices": [
        {"id": "lamp1", "name": "主灯", "type": "light", "room": "卧室"},
        {"id": "ac", "name": "空调", "room": "卧室", "commands": [{"id": "power_on", "description": "打开空调"}]},
    ],
    "rooms": [{"name": "卧室", "floor": "二楼", "aliases": ["bedroom"]}],
}


class HomeFile(RootModel[Annotated[dict[str, Any], Field(min_length=1, examples=[EXAMPLE])]]):
    """A home in any form that a file may have: our own, or an export of Home Assistant or SmartThings."""


class HomeListing(Input):
    """The home, or one part of it."""

    room: Name | None = Field(None, description="Only devices in this room or on this floor.", examples=["客厅"])


class DeviceOut(Output):
    """A device and the commands it takes."""

    id: str
    name: str
    type: str
    room: str | None
    floor: str | None
    aliases: list[str]
    commands: list[str]
    members: list[str]
    state: str | None


class RoomOut(Output):
    """A room."""

    name: str
    floor: str | None
    aliases: list[str]


class HomeOut(Output):
    """The home that was loaded."""

    devices: list[DeviceOut]
    rooms: list[RoomOut]


class HomeChanged(Output):
    """What loading did, by device id."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: list[str]


class Dialogue(Input):
    """What was spoken of: send back what the last answer gave."""

    last: list[str] = Field([], max_length=10_000)
    type_hint: str | None = None
    type_word: str | None = None
    pending: str | None = Field(None, description="The command that a question was asked about, as it was given.")
    offered: list[str] = Field([], max_length=10_000)


class DeviceAsk(Input):
    """A sentence, and where it is spoken."""

    text: Query = Field(examples=["打开除卧室以外的灯"])
    state: Dialogue | None = None
    room: Name | None = Field(None, description="The room the speaker is in.", examples=["客厅"])


class CandidateOut(Output):
    """A device that may be meant, why, and the command it is to be given."""

    id: str
    name: str
    room: str | None
    type: str
    score: float
    reasons: list[str]
    command: str | None
    value: Annotated[bool | float | str | None, Field(union_mode="smart")]
    change: float | None
    explanation: str


class StepOut(Output):
    """One command of a sentence: to act on its candidates, confirm or ask first, tell their state, or refuse."""

    decision: Decision
    hint: str | None
    question: str
    suggestions: list[str]
    ir: dict[str, Any]
    candidates: list[CandidateOut]


class DialogueOut(Output):
    """What was spoken of, for the next sentence."""

    last: list[str]
    type_hint: str | None
    type_word: str | None
    pending: str | None
    offered: list[str]


class DeviceAnswerOut(Output):
    """What a sentence means. `question` is what to say to the speaker where not everything can be acted on."""

    decision: Decision
    mood: Literal["command", "question", "statement", "quotation", "negation", "complaint"]
    degraded: bool
    reason: str | None
    question: str
    devices: list[str]
    steps: list[StepOut]
    state: DialogueOut

    def searches(self) -> Iterator[tuple[str, Mode, bool]]:
        """The matching of commands."""
        yield "devices", "keyword" if self.degraded else "hybrid", self.degraded

    def summary(self) -> str:
        """What to do, or to ask."""
        return f"Decision: {self.decision}. {self.question}".strip()

    def lines(self) -> Sequence[Any]:
        """The commands of the sentence."""
        return [one.model_dump(exclude={"ir"}, exclude_none=True) for one in self.steps]


@operation("read", http="GET /devices", tag=TAG, may_miss=True)
def get_home(call: Call, asked: HomeListing) -> HomeOut:
    """List the devices and rooms of the home."""
    return home_out(call.app.devices.home, asked)


def home_out(home: Home, asked: HomeListing) -> HomeOut:
    """The devices of a home, or those in one place; all its rooms."""
    inside = set(home.placed) if asked.room is None else home.in_place(asked.room)
    if inside is None:
        known = ", ".join(one.name for one in home.rooms)
        raise NotFound(f"there is no room or floor {asked.room!r} in this home; known: {known}")
    return HomeOut(
        devices=[
            DeviceOut.of(one, commands=[command.id for command in one.commands])
            for one in home.devices
            if one.id in inside
        ],
        rooms=[RoomOut.of(one) for one in home.rooms],
    )


@operation("write", http="PUT /devices", tag=TAG)
def put_home(call: Call, asked: HomeFile) -> HomeChanged:
    """Replace the home.

    It may have any form that a file may have: our own, with rooms, groups and profiles of commands, or an export of
    Home Assistant or SmartThings. A device without commands gets the usual ones of its type.
    """
    return HomeChanged.of(call.app.devices.replace(asked.root))


@operation(
    "read",
    http="POST /devices/ask",
    tag=TAG,
    tool=Tool(
        "find_devices",
        "Find the devices of the home that a sentence means, and the command for each. Carries out nothing.",
    ),
)
def ask_devices(call: Call, asked: DeviceAsk) -> DeviceAnswerOut:
    """Tell what a sentence means: the devices of each command, or the question to ask the speaker."""
    answer = ask_home(call.app.devices, asked)
    return answer if call.app.devices.home.placed else answer.model_copy(update={"question": NO_HOME})


def ask_home(home: SavedDevices | DeviceRetriever, asked: DeviceAsk) -> DeviceAnswerOut:
    """What a sentence means in a home."""
    answer = home.ask(asked.text, state=_state(asked.state), room=asked.room)
    pending = answer.state.pending
    return DeviceAnswerOut.of(
        answer,
        devices=[one.id for one in answer.devices],
        steps=answer.to_dict()["steps"],
        state=DialogueOut.of(answer.state, pending=None if pending is None else pending.model_dump_json()),
    )


def _state(given: Dialogue | None) -> DialogueState | None:
    from homing.devices.answer import DialogueState

    if given is None:
        return None
    pending = _pending(given.pending)
    return DialogueState(tuple(given.last), given.type_hint, given.type_word, pending, tuple(given.offered))


def _pending(given: str | None) -> QueryIR | None:
    """The command that a question was asked about; what no answer of ours contained is none."""
    from homing.devices.query import QueryIR

    try:
        return None if given is None else QueryIR.model_validate_json(given)
    except ValidationError:
        return None
