"""A home as the retrieval sees it: devices by name, room, floor and type, kept up to date device by device."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

from homing.devices.device import CommandSpec, Device, Room
from homing.devices.lexicon.things import TYPE_WORDS, TypeWord
from homing.devices.parsing.tokens import lex_plain
from homing.devices.vocabulary import Vocabulary, canonical_type, singular, spoken

How = Literal["exact", "alias", "homophone", "part", "fuzzy"]
WORTH: dict[How, float] = {"exact": 1.0, "alias": 0.98, "homophone": 0.9, "part": 0.85, "fuzzy": 0.75}
SURE_SLIP, MAYBE_SLIP = 0.8, 0.6
"""Likeness from which a misheard name is taken for the name, and from which it is worth asking about."""
COMMON = 2_000
"""A pair of characters in more names than this tells nothing apart."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What an update did, by device id."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedDevice:
    """A device with what the index worked out about it."""

    device: Device
    type: str
    classes: frozenset[str]
    room: str | None
    floor: str | None
    content: str
    order: int


class Home:
    """The devices and rooms of one home. Not safe to update while another thread asks; ask from as many as you like."""

    def __init__(self, devices: Iterable[Device] = (), rooms: Iterable[Room] = ()) -> None:
        self.vocabulary = Vocabulary()
        self.names = NameIndex()
        self.placed: dict[str, PlacedDevice] = {}
        self.by_type: dict[str, set[str]] = defaultdict(set)
        self.by_room: dict[str, set[str]] = defaultdict(set)
        self.by_floor: dict[str, set[str]] = defaultdict(set)
        self._floors: set[str] = set()
        self._all: frozenset[str] | None = None
        self._count = 0
        self._rooms: dict[str, Room] = {}
        self._profiles: dict[tuple[CommandSpec, ...], tuple[CommandSpec, ...]] = {}
        self.update(devices, rooms)

    def update(self, devices: Iterable[Device], rooms: Iterable[Room] | None = None) -> Changes:
        """Makes the home these devices: what is new, renamed, moved or gone is indexed, the rest is left alone."""
        given = _merged(devices)
        if rooms is not None:
            for room in rooms:
                self._add_room(room)
        added: list[str] = []
        changed: list[str] = []
        unchanged: list[str] = []
        for device in given.values():
            old = self.placed.get(device.id)
            content = device.content_hash
            if old is not None and old.content == content:
                unchanged.append(device.id)
                if old.device.state != device.state:
                    self.placed[device.id] = replace(old, device=device)
                continue
            (added if old is None else changed).append(device.id)
            if old is not None:
                self._remove(old)
            self._add(device, content)
        removed = [device_id for device_id in self.placed if device_id not in given]
        for device_id in removed:
            self._remove(self.placed[device_id])
        return Changes(tuple(added), tuple(changed), tuple(removed), tuple(unchanged))

    @property
    def devices(self) -> list[Device]:
        """Every device, in the order it came."""
        return [placed.device for placed in self.placed.values()]

    @property
    def rooms(self) -> list[Room]:
        """Every room that was declared."""
        return list(self._rooms.values())

    def in_place(self, place: str) -> set[str] | None:
        """The devices in a room or on a floor of this home; None where there is no such place."""
        name = self.vocabulary.place(place)
        if name is None:
            return None
        return self.by_room.get(name, set()) | self.by_floor.get(name, set())

    def is_floor(self, place: str) -> bool:
        """Whether the place is a floor and not a room."""
        name = self.vocabulary.place(place)
        return name in self._floors

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all devices."""
        if self._all is None:
            self._all = frozenset(self.placed)
        return self._all

    def of_type(self, word: TypeWord, within: frozenset[str] | None = None) -> set[str]:
        """The devices a type word may mean, of all or of some; groups only answer to their name."""
        found = set[str]()
        for type_name in word.types:
            known = self.by_type.get(type_name, set())
            found |= known if within is None else known & within
        return {device_id for device_id in found if self.fits(device_id, word)}

    def fits(self, device_id: str, word: TypeWord) -> bool:
        """Whether a type word may mean this device."""
        placed = self.placed[device_id]
        return word.means(placed.type, placed.classes)

    def _add(self, device: Device, content: str) -> None:
        # Devices with equal commands share one tuple, so that a command is weighed once for all of them.
        profile = self._profiles.setdefault(device.commands, device.commands)
        if profile is not device.commands:
            device = device.model_copy(update={"commands": profile})
        type_name = canonical_type(device.type) if device.type else ""
        room, floor = self._where(device)
        self._count += 1
        self._all = None
        classes = _classes(device, type_name)
        self.placed[device.id] = PlacedDevice(device, type_name, classes, room, floor, content, self._count)
        self.names.add(device)
        for name in device.names:
            self.vocabulary.add_name(name)
        if device.type:
            self.vocabulary.add_type(device.type)
        if not device.members:
            self.by_type[type_name].add(device.id)
            for index, key in ((self.by_room, room), (self.by_floor, floor)):
                if key:
                    index[key].add(device.id)

    def _remove(self, placed: PlacedDevice) -> None:
        device = placed.device
        del self.placed[device.id]
        self._all = None
        self.names.remove(device)
        for name in device.names:
            self.vocabulary.remove_name(name)
        self.by_type[placed.type].discard(device.id)
        for index, key in ((self.by_room, placed.room), (self.by_floor, placed.floor)):
            if key:
                index[key].discard(device.id)

    def _where(self, device: Device) -> tuple[str | None, str | None]:
        """Room and floor in the home's own spelling; a device without a room may carry it in its name."""
        name = device.room
        if name:
            if spoken(name) not in self._rooms:
                self._add_room(Room(name=name, floor=device.floor))
        else:
            form = spoken(device.name)
            places = [known for known in self._rooms if form.startswith(known) and form != known]
            name = self._rooms[max(places, key=len)].name if places else None
        known = self._rooms.get(spoken(name)) if name else None
        floor = device.floor or (known.floor if known else None)
        if floor and floor not in self._floors:
            self._floors.add(floor)
            self.vocabulary.add_room(Room(name=known.name if known else floor, floor=floor))
        return known.name if known else name, floor

    def _add_room(self, room: Room) -> None:
        self._rooms[spoken(room.name)] = room
        self.vocabulary.add_room(room)
        if room.floor:
            self._floors.add(room.floor)


def _merged(devices: Iterable[Device]) -> Mapping[str, Device]:
    """One device per id; what a second entry of the same id is called becomes an alias."""
    found: dict[str, Device] = {}
    for device in devices:
        first = found.get(device.id)
        if first is not None:
            more = tuple(dict.fromkeys(name for name in (*first.aliases, *device.names) if name != first.name))
            device = first.model_copy(update={"aliases": more})
        found[device.id] = device
    return found


def _classes(device: Device, type_name: str) -> frozenset[str]:
    if device.device_class:
        return frozenset({device.device_class.lower()})
    named = frozenset[str]().union(*(_classes_in_name(spoken(name), type_name) for name in device.names))
    own = TYPE_WORDS.get(spoken(device.type))
    return named or (frozenset({own.main}) if own is not None and own.main else frozenset())


def _classes_in_name(form: str, type_name: str) -> frozenset[str]:
    """What a name says about the kind of device: 卧室空调 is an air conditioner."""
    words = [token.type for token in lex_plain(form) if token.type is not None and type_name in token.type.types]
    return frozenset(word.main for word in words if word.main)


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
            or self._matches(self._parts(form) if form.isascii() or len(form) > 1 else (), "part")
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
        likeness = {
            other: SequenceMatcher(None, form, other, autojunk=False).ratio() for other, _ in shared.most_common(50)
        }
        # 虽然左床头灯 is no slip of the tongue, but the name with a word before it that was not understood.
        likeness |= {
            other: min(found, MAYBE_SLIP)
            for other, found in likeness.items()
            if other in form and len(form) - len(other) > 1
        }
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
        return self._sounds.get(_sound(form), set())


def _pairs(form: str) -> set[str]:
    """Pairs of neighbouring characters, and the single ones."""
    return {form[i : i + 2] for i in range(len(form) - 1)} | set(form) - {" "}


def _holds(other: str, form: str, words: list[str]) -> bool:
    if not form.isascii():
        return form in other
    there = {singular(word) or word for word in other.split()}
    return all(word in there for word in words)


def _sound(form: str) -> str:
    """The pinyin without tones."""
    from pypinyin import lazy_pinyin

    return " ".join(lazy_pinyin(form))
