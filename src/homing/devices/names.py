"""Finding devices by what they are called: exactly, by a part, by ear, and with a slip of the tongue."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from homing.devices.device import Device
from homing.devices.spoken import singular, spoken

logger = logging.getLogger(__name__)

How = Literal["exact", "alias", "homophone", "part", "fuzzy"]
WORTH: dict[How, float] = {"exact": 1.0, "alias": 0.98, "homophone": 0.9, "part": 0.85, "fuzzy": 0.75}
SURE_SLIP, MAYBE_SLIP = 0.8, 0.6
"""Likeness from which a misheard name is taken for the name, and from which it is worth asking about."""
COMMON = 2_000
"""A pair of characters in more names than this tells nothing apart."""


@dataclass(frozen=True, slots=True)
class NameMatch:
    """One device whose name fits, and how."""

    device_id: str
    how: How
    name: str
    likeness: float


class NameIndex:
    """Names and aliases by their form, by their pairs of characters, and by their sound."""

    def __init__(self) -> None:
        self._forms: dict[str, dict[str, tuple[str, bool]]] = defaultdict(dict)
        self._pairs: dict[str, set[str]] = defaultdict(set)
        self._sounds: dict[str, set[str]] | None = None

    def add(self, device: Device) -> None:
        """The device is found by its names from now on."""
        for position, name in enumerate(device.names):
            form = spoken(name)
            if not form:
                continue
            if form not in self._forms:
                for pair in _pairs(form):
                    self._pairs[pair].add(form)
                if self._sounds is not None:
                    self._sounds[_sound(form)].add(form)
            self._forms[form].setdefault(device.id, (name, position > 0))

    def remove(self, device: Device) -> None:
        """The device is no longer found."""
        for form in {spoken(name) for name in device.names} & self._forms.keys():
            self._forms[form].pop(device.id, None)
            if self._forms[form]:
                continue
            del self._forms[form]
            for pair in _pairs(form):
                self._pairs[pair].discard(form)
            if self._sounds is not None:
                self._sounds[_sound(form)].discard(form)

    def find(self, name: str) -> list[NameMatch]:
        """Devices of that name: the first of exact, by ear, as a part of the name, or a slip that finds any."""
        form = spoken(name)
        for reading in (form, singular(form) or form):
            if reading in self._forms:
                return self._matches([reading], "exact")
        return (
            self._matches(self._by_sound(form), "homophone")
            or self._matches(self._parts(form), "part")
            or [match for match in self.near(name) if match.likeness >= SURE_SLIP]
        )

    def containing(self, word: str) -> list[NameMatch]:
        """Devices with the word in their name."""
        return self._matches(self._parts(spoken(word)), "part")

    def near(self, name: str, limit: int = 5) -> list[NameMatch]:
        """Devices whose names are like this one, most alike first: what may have been meant."""
        form = spoken(name)
        shared: Counter[str] = Counter()
        for pair in _pairs(form):
            posted = self._pairs.get(pair, set())
            if len(posted) <= COMMON:
                shared.update(posted)
        likeness = {other: _likeness(form, other) for other, _ in shared.most_common(50)}
        good = sorted((o for o in likeness if likeness[o] >= MAYBE_SLIP), key=lambda o: (-likeness[o], o))[:limit]
        return [match for other in good for match in self._matches([other], "fuzzy", likeness[other])]

    def _matches(self, forms: Iterable[str], how: How, likeness: float = 1.0) -> list[NameMatch]:
        found = []
        for form in sorted(forms):
            for device_id, (name, alias) in sorted(self._forms[form].items()):
                found.append(NameMatch(device_id, "alias" if alias and how == "exact" else how, name, likeness))
        return found

    def _parts(self, form: str) -> set[str]:
        """Names that hold the form, or in English all of its words in any order."""
        words = form.split()
        if form.isascii():
            words = [singular(word) or word for word in words]
        keys = [pair for word in words for pair in _pairs(word)] or list(_pairs(form))
        if not keys or not form:
            return set()
        candidates = set.intersection(*(self._pairs.get(pair, set()) for pair in keys))
        return {other for other in candidates if _holds(other, form, words)}

    def _by_sound(self, form: str) -> set[str]:
        if form.isascii():
            return set()
        if self._sounds is None:
            # Filled before it is seen: other threads may be asking.
            sounds: dict[str, set[str]] = defaultdict(set)
            for other in self._forms:
                sounds[_sound(other)].add(other)
            self._sounds = sounds
        sound = _sound(form)
        return self._sounds.get(sound, set()) if sound else set()


def _pairs(form: str) -> set[str]:
    """Pairs of neighbouring characters, and the single ones."""
    return {form[i : i + 2] for i in range(len(form) - 1)} | set(form) - {" "}


def _holds(other: str, form: str, words: list[str]) -> bool:
    if not form.isascii():
        return form in other
    there = {singular(word) or word for word in other.split()}
    return all(word in there for word in words)


def _likeness(form: str, other: str) -> float:
    return SequenceMatcher(None, form, other, autojunk=False).ratio()


def _sound(form: str) -> str:
    """The pinyin without tones; without the library, nothing sounds alike."""
    try:
        from pypinyin import lazy_pinyin
    except ImportError:
        logger.debug("pypinyin is not installed: names are not matched by sound")
        return ""
    return " ".join(lazy_pinyin(form))
