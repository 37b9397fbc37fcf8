"""A device that may be meant, and why."""

from __future__ import annotations

from dataclasses import dataclass

from homing.devices.device import CommandSpec, Device

NAME_HIT, ROOM_HIT, TYPE_HIT, COMMAND_HIT = "name_hit", "room_hit", "type_hit", "command_hit"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device with a score in [0, 1], the reasons it is here, and the command that does what was asked.

    `value` is what the command is given; `change` is by how much to move what it is now. `explanation` says the
    reasons for a person.
    """

    device: Device
    score: float
    reasons: tuple[str, ...] = ()
    command: CommandSpec | None = None
    value: float | str | bool | None = None
    change: float | None = None
    explanation: str = ""
