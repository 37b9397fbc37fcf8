"""From a spoken sentence to the devices and the command it means, with reasons.

A sentence passes `parsing` (tokens, what is meant, clauses, phrases, rules), which knows words from `lexicon` and from
the home's `vocabulary` and gives QueryIRs. `candidates` says which devices those speak of, `matching` which command of
a device does it and with which value; `acting` decides whether to act, to ask or to refuse.
"""

from __future__ import annotations

from homing.devices.answer import Answer, Candidate, DialogueState, Step, render
from homing.devices.candidates import filter_by_scope, recall
from homing.devices.device import CommandSpec, Device, Room, ValueOption, ValueRange
from homing.devices.home import Changes, Home
from homing.devices.loading import HomeFile, load_commands, load_home, load_profiles
from homing.devices.matching import filter_by_capability
from homing.devices.parsing.parse import parse, parse_all
from homing.devices.query import QueryIR, SpokenValue
from homing.devices.retriever import DeviceRetriever
from homing.devices.similarity import CommandHit, CommandIndex

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
