"""The closed lists of one home: what its rooms, floors, types and devices are called, in a form that compares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from homing.devices.device import Room
from homing.devices.lexicon.things import MACHINE_TYPES, ROOM_CONCEPTS, ROOM_KINDS, TYPE_WORDS, TypeWord, floor_number
from homing.text.folding import fold

_CJK = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CONTRACTIONS = (
    (re.compile(r"\b(what|it|that|there|which|how|who|where)'s\b"), r"\1 is"),
    (re.compile(r"\blet's\b"), "let us"),
    (re.compile(r"\b(do|does|did|is|are|was|were|has|have|had|should|must|would|could|need)n't\b"), r"\1 not"),
    (re.compile(r"\b(do|does|did)nt\b"), r"\1 not"),
    (re.compile(r"\bcan't\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bi'd\b"), "i would"),
    (re.compile(r"\b(i|we|you|he|she|it|they|that|there)'ll\b"), r"\1 will"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"\b(i|we|you|they)'(?:ve)\b"), r"\1 have"),
    (re.compile(r"\b(we|you|they)'re\b"), r"\1 are"),
    (re.compile(r"'s\b|s'(?=\s|$)"), lambda found: "" if found[0] == "'s" else "s"),
)
_EMOJI = re.compile("[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]+")
_JOINTS = re.compile(r"[_\-/'\"“”‘’「」『』《》()\[\]{}*#~`^|\\<>]+")
# A full stop inside 20.5 is part of the number; any other ends a sentence.
_STOP = re.compile(r"\.(?!\d)|(?<!\d)\.")
_SPACES = re.compile(r"\s+")
_SPACE_BY_CJK = re.compile(rf"(?<=[{_CJK}]) | (?=[{_CJK}])")


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
        if concept in ("upstairs", "downstairs"):
            floors = {floor_number(known): place for known, place in self.places.items() if floor_number(known)}
            ends = sorted(number for number in floors if number is not None)
            if len(ends) == 2:
                return [floors[ends[concept == "upstairs"]]]
        same = _unique(place for known, place in self.places.items() if concept and ROOM_CONCEPTS.get(known) == concept)
        return same or _unique(place for known, place in self.places.items() if form and (form in known))

    def rooms_of_a_kind(self, word: str) -> list[str]:
        """The rooms that a word may mean which names none of them: 主卧 and 次卧 for 卧室."""
        kinds = ROOM_KINDS.get(ROOM_CONCEPTS.get(spoken(word), ""), set())
        return _unique(place for known, place in self.places.items() if ROOM_CONCEPTS.get(known) in kinds)

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


@lru_cache(maxsize=10_000)
def spoken(text: str) -> str:
    """The comparable form: lower case, simplified, half-width, contractions written out, no spaces beside Chinese.

    Emoji are dropped, because nobody says them, unless nothing else is left.
    """
    form = fold(text).lower()
    for pattern, written_out in _CONTRACTIONS:
        form = pattern.sub(written_out, form)
    form = _STOP.sub("。", _JOINTS.sub(" ", form))
    bare = _tidy(_EMOJI.sub(" ", form))
    return bare or _tidy(form)


def _tidy(form: str) -> str:
    return _SPACE_BY_CJK.sub("", _SPACES.sub(" ", form)).strip()


def is_chinese(text: str) -> bool:
    """Whether an answer to this text should be in Chinese."""
    return re.search(rf"[{_CJK}]", text) is not None


def singular(words: str) -> str | None:
    """An English plural without its ending; None for what is not one."""
    if len(words) < 3 or not words.endswith("s") or not words[-2].isascii() or words.endswith(("ss", "us", "is")):
        return None
    if words.endswith("ies"):
        return words[:-3] + "y"
    if words.endswith(("ches", "shes", "xes")):
        return words[:-2]
    return words[:-1]
