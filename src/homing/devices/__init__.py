"""From a spoken sentence to the devices and the command it means, with reasons."""

from __future__ import annotations

from homing.devices.answer import Answer, DialogueState, Step
from homing.devices.candidate import Candidate
from homing.devices.capability import filter_by_capability
from homing.devices.commands import CommandHit, CommandIndex
from homing.devices.device import CommandSpec, Device, Room, ValueOption, ValueRange
from homing.devices.home import Changes, Home
from homing.devices.loading import HomeFile, load_commands, load_home, load_profiles
from homing.devices.parsing import parse, parse_all
from homing.devices.query import QueryIR, SpokenValue
from homing.devices.recall import recall
from homing.devices.rendering import render
from homing.devices.retriever import DeviceRetriever
from homing.devices.scope import filter_by_scope

__all__ = [
    "Answer",
    "Candidate",
    "Changes",
    "CommandHit",
    "CommandIndex",
    "CommandSpec",
    "Device",
    "DeviceRetriever",
    "DialogueState",
    "Home",
    "HomeFile",
    "QueryIR",
    "Room",
    "SpokenValue",
    "Step",
    "ValueOption",
    "ValueRange",
    "filter_by_capability",
    "filter_by_scope",
    "load_commands",
    "load_home",
    "load_profiles",
    "parse",
    "parse_all",
    "recall",
    "render",
]
