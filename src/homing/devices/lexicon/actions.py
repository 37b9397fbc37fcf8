"""Verbs: what each means, what is its opposite, and how it is written in an answer.

A meaning is a set of concepts, because 打开 is both "turn on" and "open", and only the device decides which.
"""

from __future__ import annotations

from dataclasses import dataclass

from homing.devices.lexicon.words import TABLES, words


@dataclass(frozen=True, slots=True)
class Action:
    """What a verb asks for; `property` and `type` are what it implies (调亮: brightness; illuminate: a light)."""

    concepts: frozenset[str]
    property: str | None = None
    type: str | None = None


ACTIONS: dict[str, Action] = {}
"""Every verb by its comparable form."""

for _concepts, _property, _type, *_languages in TABLES["verbs"]:
    _action = Action(frozenset(_concepts.split()), _property or None, _type or None)
    ACTIONS.update(dict.fromkeys(words(*_languages), _action))

CARRIERS = frozenset(
    {"turn", "switch", "put", "flip", "get", "power", "bring", "shut", "keep", "leave", "have", "want", "need", "like"}
    | {"roll", "pull", "crank", "knock", "bump", "nudge"}
)
"""English verbs that mean nothing until their particle comes: turn … off."""

PARTICLES: dict[str, frozenset[str]] = {
    "on": frozenset({"on"}),
    "off": frozenset({"off"}),
    "out": frozenset({"off"}),
    "up": frozenset({"up", "open"}),
    "down": frozenset({"down", "close"}),
}

POSITIVE = frozenset(
    {"on", "open", "up", "unlock", "play", "resume", "start", "unmute", "clean", "mow", "water", "arm"}
)
NEGATIVE = frozenset({"off", "close", "down", "lock", "pause", "stop", "mute", "dock", "disarm"})

ACCEPTS: dict[str, frozenset[str]] = {
    "on": frozenset({"on", "start", "clean", "arm", "mow"}),
    "off": frozenset({"off", "stop", "dock", "disarm"}),
    "open": frozenset({"open", "unlock"}),
    "close": frozenset({"close", "lock"}),
    "start": frozenset({"start", "on", "clean", "play", "mow", "arm"}),
    "stop": frozenset({"stop", "off", "pause"}),
    "clean": frozenset({"clean", "start", "on"}),
    "mow": frozenset({"mow", "start", "on"}),
    "water": frozenset({"water", "open", "start", "on"}),
    "play": frozenset({"play", "resume"}),
    "resume": frozenset({"resume", "play", "start"}),
}
"""For an action, the concepts of commands that do it, an action missing here accepts itself."""

CANONICAL = {concept: (chinese, english) for concept, chinese, english in TABLES["written verbs"]}
"""How a concept is said in Chinese and English."""

SPECIAL = {
    ("up", "brightness"): ("调亮", "brighten"),
    ("down", "brightness"): ("调暗", "dim"),
    ("play", "title"): ("播放指定内容", "play media content"),
    ("clean", "area"): ("清扫指定区域", "clean the cleaning area"),
}


def canonical(concepts: frozenset[str], property_words: tuple[str, str] | None, name: str | None, chinese: bool) -> str:
    """The verb phrase of a meaning: 打开, turn on, 设置亮度, set brightness."""
    first = next((concept for concept in CANONICAL if concept in concepts), None)
    if first is None:
        return ""
    special = SPECIAL.get((first, name or ""))
    if special:
        return special[0 if chinese else 1]
    verb = CANONICAL[first][0 if chinese else 1]
    if property_words is None or first not in ("up", "down", "set", "query"):
        return verb
    return f"{verb}{property_words[0]}" if chinese else f"{verb} {property_words[1]}"


def accepted(concepts: frozenset[str]) -> frozenset[str]:
    """The concepts of commands that do what this action asks."""
    found = set(concepts)
    for concept in concepts:
        found |= ACCEPTS.get(concept, frozenset())
    return frozenset(found)


def opposed(action: frozenset[str], command: frozenset[str]) -> bool:
    """Whether the command goes the other way: on for off, up for down, lock for unlock."""
    forwards, backwards = bool(action & POSITIVE), bool(action & NEGATIVE)
    if forwards == backwards:
        return False
    return (
        not command & POSITIVE
        if forwards and command & NEGATIVE
        else bool(backwards and command & POSITIVE and not command & NEGATIVE)
    )
