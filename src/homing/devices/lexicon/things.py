"""Kinds of device and rooms: the words people use, and the types, classes and places they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from homing.devices.lexicon.words import TABLES, by_word, words

SURE_CLASSES = frozenset(
    {"garage", "garage_door", "window", "gate", "awning", "door", "exhaust", "purifier", "dehumidifier", "projector"}
)
"""Classes a device must be known to have: a cover of unknown class may be a curtain, but is no garage door."""


@dataclass(frozen=True, slots=True)
class TypeWord:
    """What a word may stand for: types, each with the classes it is limited to (none: all of the type).

    The first type is the one that is written into a QueryIR; `main` is the class of a device that is called so: an air
    conditioner is one, though whoever says the word may also mean a thermostat.
    """

    limits: tuple[tuple[str, frozenset[str]], ...]
    main: str | None = None

    @classmethod
    def of(cls, type_name: str) -> TypeWord:
        """A word for all of one type."""
        return cls(((type_name, frozenset()),))

    @property
    def hint(self) -> str:
        """The type that is written into a QueryIR."""
        return self.limits[0][0]

    @property
    def types(self) -> frozenset[str]:
        """Every type it may mean."""
        return frozenset(name for name, _ in self.limits)

    @property
    def narrow(self) -> bool:
        """Whether it says more than the type."""
        return any(classes for _, classes in self.limits)

    @property
    def single(self) -> bool:
        """Whether it tells covers apart: 纱帘 and gate do, 窗帘 does not."""
        return self.types == {"cover"} and 1 <= len(self.limits[0][1]) <= 2

    def means(self, type_name: str, classes: frozenset[str]) -> bool:
        """Whether a device of that type and those classes may be meant."""
        for name, limit in self.limits:
            if name == type_name:
                unknown = not classes and not limit & SURE_CLASSES
                return not limit or unknown or not limit.isdisjoint(classes)
        return False


TYPE_WORDS: dict[str, TypeWord] = {}
"""Type word by its comparable form."""


def _type_word(cell: str) -> TypeWord:
    limits = []
    for part in cell.split():
        name, _, classes = part.partition(":")
        limits.append((name, tuple(filter(None, classes.split(",")))))
    main = next((classes[0] for _, classes in limits if classes), None)
    return TypeWord(tuple((name, frozenset(classes)) for name, classes in limits), main)


for _types, *_languages in TABLES["device kinds"]:
    TYPE_WORDS.update(dict.fromkeys(words(*_languages), _type_word(_types)))

ALWAYS_ASK = frozenset({"lock", "alarm", "siren", "valve", "water_heater", "oven"})
"""Types where acting on several because one was meant would do harm: a sentence must say "all"."""

MACHINE_TYPES = by_word("machine types")
"""Type names that programs write and people do not say."""

ROOM_CONCEPTS = by_word("rooms")
"""Concept of a room by its comparable form."""

ROOM_KINDS = {"bedroom": {"master bedroom", "second bedroom"}, "outside": {"garden", "patio", "balcony"}}
"""Words for rooms of a kind, which name none of them."""

LOOKS_LIKE_ROOM = re.compile(
    r".+(?:室|房|厅|房间|廊|院|楼|层|卧|吧台|角落)$|.+ (?:room|bedroom|bathroom|floor|hall|wing)$"
)
"""An unknown word of this shape is a room nobody has told us about, not a device."""


def says_a_room(form: str) -> bool:
    """Whether a comparable form is the word for a room, in this home or not."""
    return form in ROOM_CONCEPTS or LOOKS_LIKE_ROOM.match(form) is not None


_ORDINALS = ["zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_CHINESE_DIGITS = "零一二三四五六七八九十"
_FLOOR = re.compile(
    rf"^(?:第)?(?P<zh>[{_CHINESE_DIGITS}]|\d{{1,2}})(?:楼|层)$|^(?P<word>{'|'.join(_ORDINALS)}) floor$"
    r"|^(?P<nth>\d{1,2})(?:st|nd|rd|th) floor$|^floor (?P<number>\d{1,2})$"
    r"|^(?P<short>\d{1,2}) ?f$|^level (?P<level>\d{1,2})$"
)


def floor_number(form: str) -> int | None:
    """Which floor 二楼, 2楼, second floor, 2nd floor, floor 2 or 2F is; None for what names no floor by number."""
    found = _FLOOR.match(form)
    if found is None:
        return None
    if found["word"]:
        return _ORDINALS.index(found["word"])
    digits = next(found[group] for group in ("zh", "nth", "number", "short", "level") if found[group])
    return int(digits) if digits.isdigit() else _CHINESE_DIGITS.index(digits)


FLOOR_WORDS = re.compile(
    rf"(?:第)?(?:[{_CHINESE_DIGITS}]|\d{{1,2}})(?:楼|层)|(?:{'|'.join(_ORDINALS)}|\d{{1,2}}(?:st|nd|rd|th)) floor\b"
    r"|floor \d{1,2}\b|\b\d{1,2}f\b|level \d{1,2}\b"
)
"""A floor by number, anywhere in a sentence."""
