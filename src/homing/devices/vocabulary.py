"""The closed lists of one home: what its rooms, floors, types and devices are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from homing.devices.device import Room
from homing.devices.lexicon.rooms import ROOM_CONCEPTS, floor_number
from homing.devices.lexicon.types import MACHINE_TYPES, TYPE_WORDS, TypeWord
from homing.devices.spoken import singular, spoken


class Vocabulary:
    """Looks words up in the lists of a home. Names, rooms and types may come and go; a lookup costs the same."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.types: dict[str, TypeWord] = {}
        self.type_names: list[str] = []
        self._uses: Counter[str] = Counter()
        self._lengths: Counter[int] = Counter()

    @classmethod
    def of(cls, rooms: Iterable[str | Room] = (), types: Iterable[str] = (), names: Iterable[str] = ()) -> Vocabulary:
        """A vocabulary of plain lists."""
        made = cls()
        for room in rooms:
            made.add_room(room if isinstance(room, Room) else Room(name=room))
        for name in names:
            made.add_name(name)
        for type_name in types:
            made.add_type(type_name)
        return made

    def add_name(self, name: str) -> None:
        """A device may be called so from now on; several devices may share a name."""
        form = spoken(name)
        if form:
            self._uses[form] += 1
            self._lengths[len(form)] += 1
            self.names.setdefault(form, name)

    def remove_name(self, name: str) -> None:
        """One device fewer is called so."""
        form = spoken(name)
        if self._uses[form] > 0:
            self._uses[form] -= 1
            self._forget_length(form)
            if not self._uses[form]:
                del self._uses[form], self.names[form]

    def add_room(self, room: Room) -> None:
        """A room, its other names, and its floor."""
        for word in (room.name, *room.aliases):
            self._add_place(word, room.name)
        if room.floor:
            self._add_place(room.floor, room.floor)

    def add_type(self, name: str) -> None:
        """A type of this home: a known word in any language or spelling, or a word of its own."""
        form = spoken(name)
        if name and name not in self.type_names:
            self.type_names.append(name)
        if form and form not in TYPE_WORDS and form not in self.types:
            self.types[form] = TypeWord.of(canonical_type(name))
            self._lengths[len(form)] += 1

    def place(self, word: str) -> str | None:
        """The room or floor that a word means: by name, by another name, by number, or in the other language.

        None where no place, or more than one, fits.
        """
        fits = self.near_places(word)
        return fits[0] if len(fits) == 1 else None

    def near_places(self, word: str) -> list[str]:
        """Every room or floor a word may mean, exact ones alone if there are any."""
        form = spoken(word)
        for reading in (form, singular(form)):
            if reading in self.places:
                return [self.places[reading]]
        number = floor_number(form)
        if number is not None:
            return _unique(place for known, place in self.places.items() if floor_number(known) == number)
        concept = ROOM_CONCEPTS.get(form)
        same = _unique(place for known, place in self.places.items() if concept and ROOM_CONCEPTS.get(known) == concept)
        return same or _unique(place for known, place in self.places.items() if form and (form in known))

    def type_word(self, form: str) -> TypeWord | None:
        """What a type word means here."""
        return self.types.get(form) or TYPE_WORDS.get(form)

    @property
    def lengths(self) -> list[int]:
        """How long the words of this home are."""
        return sorted(self._lengths)

    def _add_place(self, word: str, place: str) -> None:
        form = spoken(word)
        if form and form not in self.places:
            self.places[form] = place
            self._lengths[len(form)] += 1

    def _forget_length(self, form: str) -> None:
        self._lengths[len(form)] -= 1
        if self._lengths[len(form)] <= 0:
            del self._lengths[len(form)]


def canonical_type(name: str) -> str:
    """The type as Homing writes it: light for 灯, Light or lamp; a word nobody knows stays what it is."""
    form = spoken(name)
    if form in MACHINE_TYPES:
        return MACHINE_TYPES[form]
    known = TYPE_WORDS.get(form) or TYPE_WORDS.get(singular(form) or "")
    return known.hint if known else form.replace(" ", "_")


def _unique(places: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(places))
