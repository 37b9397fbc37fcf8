"""`/devices`: the home, and what a sentence means in it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Body as Payload
from pydantic import Field, ValidationError

from homing.devices.answer import Answer as DeviceAnswer
from homing.devices.answer import DialogueState
from homing.devices.device import Device
from homing.devices.query import QueryIR
from homing.server.access import Reading, Writing
from homing.server.body import Answer, Body, Name, Query

router = APIRouter(prefix="/devices", tags=["devices"])


EXAMPLE = {
    "devices": [
        {"id": "lamp1", "name": "主灯", "type": "light", "room": "卧室"},
        {"id": "ac", "name": "空调", "room": "卧室", "commands": [{"id": "power_on", "description": "打开空调"}]},
    ],
    "rooms": [{"name": "卧室", "floor": "二楼", "aliases": ["bedroom"]}],
}
HomeFile = Annotated[dict[str, Any], Payload(min_length=1, examples=[EXAMPLE])]


class DeviceTold(Answer):
    """A device and what it can be told."""

    id: str
    name: str
    type: str
    room: str | None
    floor: str | None
    aliases: list[str]
    commands: list[str]
    members: list[str]
    state: str | None


class RoomTold(Answer):
    """A room."""

    name: str
    floor: str | None
    aliases: list[str]


class HomeTold(Answer):
    """The home that was loaded."""

    devices: list[DeviceTold]
    rooms: list[RoomTold]


class HomeChanged(Answer):
    """What loading did, by device id."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: list[str]


class Dialogue(Body):
    """What was spoken of: send back what the last answer gave."""

    last: list[str] = Field([], max_length=10_000)
    type_hint: str | None = None
    type_word: str | None = None
    pending: str | None = Field(None, description="The command that a question was asked about, as it was given.")


class Ask(Body):
    """A sentence, and where it is spoken."""

    text: Query = Field(examples=["打开除卧室以外的灯"])
    state: Dialogue | None = None
    room: Name | None = Field(None, description="The room the speaker is in.", examples=["客厅"])


class CandidateTold(Answer):
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


class StepTold(Answer):
    """One command of a sentence: to act on its candidates, to ask about them, or to refuse."""

    decision: Literal["act", "ask", "refuse"]
    hint: str | None
    question: str
    suggestions: list[str]
    ir: dict[str, Any]
    candidates: list[CandidateTold]


class DialogueTold(Answer):
    """What was spoken of, for the next sentence."""

    last: list[str]
    type_hint: str | None
    type_word: str | None
    pending: str | None


class Asked(Answer):
    """What a sentence means. `question` is what to say to the speaker where not everything can be acted on."""

    decision: Literal["act", "ask", "refuse"]
    degraded: bool
    reason: str | None
    question: str
    devices: list[str]
    steps: list[StepTold]
    state: DialogueTold


@router.get("")
def get_home(caller: Reading) -> HomeTold:
    """The devices and rooms of the home."""
    home = caller.app.devices.home
    return HomeTold(
        devices=[_device(one) for one in home.devices],
        rooms=[RoomTold(name=one.name, floor=one.floor, aliases=list(one.aliases)) for one in home.rooms],
    )


@router.put("")
def put_home(home: HomeFile, caller: Writing) -> HomeChanged:
    """Make this the home, in place of the one before.

    It may have any form that a file may have: our own, with rooms, groups and profiles of commands, or an export of
    Home Assistant or SmartThings. A device without commands gets the usual ones of its type.
    """
    changes = caller.app.devices.replace(home)
    return HomeChanged(
        added=list(changes.added),
        changed=list(changes.changed),
        removed=list(changes.removed),
        unchanged=list(changes.unchanged),
    )


@router.post("/ask")
def ask(body: Ask, caller: Reading) -> Asked:
    """What a sentence means: for each command its devices, or the question to put to the speaker."""
    caller.service.log_query(body.text)
    answer = caller.app.devices.ask(body.text, state=_state(body.state), room=body.room)
    caller.service.metrics.heard("devices", answer.mode, answer.degraded)
    return _asked(answer)


def _device(device: Device) -> DeviceTold:
    return DeviceTold(
        id=device.id,
        name=device.name,
        type=device.type,
        room=device.room,
        floor=device.floor,
        aliases=list(device.aliases),
        commands=[one.id for one in device.commands],
        members=list(device.members),
        state=device.state,
    )


def _state(given: Dialogue | None) -> DialogueState | None:
    if given is None:
        return None
    return DialogueState(tuple(given.last), given.type_hint, given.type_word, _pending(given.pending))


def _pending(given: str | None) -> QueryIR | None:
    """The command that a question was asked about; what no answer of ours contained is none."""
    try:
        return None if given is None else QueryIR.model_validate_json(given)
    except ValidationError:
        return None


def _asked(answer: DeviceAnswer) -> Asked:
    state = answer.state
    told = answer.to_dict()
    return Asked(
        decision=answer.decision,
        degraded=answer.degraded,
        reason=answer.reason,
        question=answer.question,
        devices=[one.id for one in answer.devices],
        steps=[StepTold.model_validate(step) for step in told["steps"]],
        state=DialogueTold(
            last=list(state.last),
            type_hint=state.type_hint,
            type_word=state.type_word,
            pending=None if state.pending is None else state.pending.model_dump_json(),
        ),
    )
