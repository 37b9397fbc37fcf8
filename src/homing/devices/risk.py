"""What is confirmed before it is done: what opens, unlocks, heats or disarms."""

from __future__ import annotations

import re

from homing.devices.device import CommandSpec
from homing.devices.home import PlacedDevice
from homing.devices.parsing.tokens import lex_plain
from homing.devices.similarity import command_meaning
from homing.devices.vocabulary import spoken

HEATS = frozenset(
    {"oven", "stove", "kettle", "rice_cooker", "water_heater", "coffee_machine", "microwave", "air_fryer", "fireplace"}
    | {"heater", "iron", "siren"}
)
"""Types that become hot, or wake the street, once they are on."""
OPENS = frozenset({"garage", "garage_door", "gate", "door"})
"""Classes of covers that let somebody in."""
_BEGINS = frozenset({"on", "open", "start", "set", "up", "toggle", "unlock", "play"})
_GAS = re.compile("燃气|瓦斯|煤气|天然气|gas")


def needs_confirmation(placed: PlacedDevice, command: CommandSpec | None) -> bool:
    """Whether giving this command to this device opens, unlocks, heats or disarms something."""
    if command is None:
        return False
    does = command_meaning(command).concepts
    if does & {"unlock", "disarm"}:
        return True
    kinds = {placed.type} | (
        _kinds_in_name(spoken(placed.device.name)) if placed.type in ("switch", "") else frozenset()
    )
    if "lock" in kinds or "valve" in kinds or kinds & HEATS:
        return bool(does & _BEGINS)
    return placed.type == "cover" and bool(placed.classes & OPENS) and bool(does & _BEGINS)


def gives_water(placed: PlacedDevice) -> bool:
    """Whether a garden is watered with it: by its own commands, or a valve that is not of the gas."""
    if any("water" in command_meaning(command).concepts for command in placed.device.commands):
        return True
    return placed.type == "valve" and _GAS.search(spoken(placed.device.name)) is None


def _kinds_in_name(form: str) -> frozenset[str]:
    """What a switch switches, by the last kind in its name: 烤箱插座 is a plug, 烤箱 an oven."""
    kinds = [token.type.hint for token in lex_plain(form) if token.type is not None]
    return frozenset(kinds) - {"switch"}
