"""Which devices a QueryIR speaks of: inside its scope, which is a hard filter, by name, by room, by type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homing.devices.answer import NAME_HIT, ROOM_HIT, TYPE_HIT, Candidate
from homing.devices.device import Device
from homing.devices.home import WORTH, Home, NameMatch
from homing.devices.lexicon.things import TypeWord, says_a_room
from homing.devices.lexicon.values import PERCENT_PROPERTY, PROPERTY_TYPES
from homing.devices.parsing.phrases import phrases
from homing.devices.parsing.tokens import lex
from homing.devices.query import QueryIR
from homing.devices.similarity import meaning_of
from homing.devices.vocabulary import canonical_type, singular, spoken

TYPE_SCORE, ROOM_SCORE, PLACE_BONUS = 0.7, 0.5, 0.1

SET_TYPES = {
    "brightness": "light", "temperature": "climate", "color": "light", "color_temperature": "light",
    "volume": "media_player", "position": "cover", "speed": "fan", "humidity": "humidifier", "mode": "climate",
    "channel": "media_player", "source": "media_player",
}  # fmt: skip
"""The type that is meant where a sentence only says what to set: "set the brightness to 50%"."""


def recall(devices: Iterable[Device] | Home, ir: QueryIR) -> list[Candidate]:
    """Candidates inside the scope of the QueryIR, best first, with the reasons `name_hit`, `room_hit`, `type_hit`.

    A name that no device has finds nothing, whatever the type: a device that was not named is not meant.
    """
    home = devices if isinstance(devices, Home) else Home(devices)
    return recall_within(home, ir, scope_of(home, ir).ids)


def recall_within(home: Home, ir: QueryIR, ids: frozenset[str]) -> list[Candidate]:
    """The same among the given devices."""
    word = type_word(home, ir)
    reasons = (ROOM_HIT,) if ir.scope_include else ()
    bonus = PLACE_BONUS if ir.scope_include else 0.0
    by_name = _by_name(home, ir, ids, word)
    found = {
        match.device_id: Candidate(
            home.placed[match.device_id].device,
            min(1.0, WORTH[match.how] * match.likeness),
            (NAME_HIT, *reasons, *((TYPE_HIT,) if word and home.fits(match.device_id, word) else ())),
            explanation=_named(match),
        )
        for match in by_name
    }
    if ir.name_hint is None or _only_a_type(ir, word):
        pool = _by_kind(home, ir, ids, word)
        score = TYPE_SCORE if word is not None else ROOM_SCORE
        why = (*reasons, *((TYPE_HIT,) if word is not None else ()))
        for device_id in pool - found.keys():
            device = home.placed[device_id].device
            found[device_id] = Candidate(device, score + bonus, why, explanation=_placed(home, device_id, word))
    return sorted(found.values(), key=lambda candidate: (-candidate.score, home.placed[candidate.device.id].order))


def type_word(home: Home, ir: QueryIR) -> TypeWord | None:
    """What the type of a QueryIR means in this home."""
    for said in (ir.type_word, ir.type_hint):
        if said:
            form = spoken(said)
            known = home.vocabulary.type_word(form) or home.vocabulary.type_word(singular(form) or form)
            if known is not None:
                return known
    if ir.type_hint:
        return TypeWord.of(canonical_type(ir.type_hint))
    return None


def _by_name(home: Home, ir: QueryIR, ids: frozenset[str], word: TypeWord | None) -> list[NameMatch]:
    if ir.name_hint is None:
        return []
    matches = _of_kind(home, ir, home.names.find(ir.name_hint), ids, word)
    if not matches and word is not None and ir.type_word:
        # 书房的台灯 is 阅读台灯 or 台灯 2: without the type word, what is left must be in the name.
        form = spoken(ir.name_hint)
        rest = form.replace(ir.type_word, "").strip() if ir.type_word in form else form
        if rest and rest != form:
            matches = _of_kind(home, ir, home.names.containing(rest), ids, word)
    best = max((WORTH[match.how] for match in matches), default=0.0)
    return [match for match in matches if WORTH[match.how] >= best - 0.05]


def _of_kind(
    home: Home, ir: QueryIR, matches: list[NameMatch], ids: frozenset[str], word: TypeWord | None
) -> list[NameMatch]:
    """Those inside the scope that the type word does not contradict; a name may hold the word itself."""
    kept = []
    for match in matches:
        if match.device_id not in ids or _cuts_its_room(home, match, ir.name_hint or ""):
            continue
        holds = ir.type_word is not None and (singular(ir.type_word) or ir.type_word) in spoken(match.name)
        # A sensor called Light is not meant by "the light" while there are lights; a switch called Coffee Maker is.
        only = _only_a_type(ir, word) and word is not None and bool(home.of_type(word))
        if word is None or home.fits(match.device_id, word) or (holds and not only):
            kept.append(match)
    return kept


def _cuts_its_room(home: Home, match: NameMatch, said: str) -> bool:
    """阳台灯 is no 台灯: what was said begins inside the word for its room."""
    room, name, form = spoken(home.placed[match.device_id].room or ""), spoken(match.name), spoken(said)
    at = name.find(form)
    return match.how == "part" and bool(room) and name.startswith(room) and 0 < at < len(room)


def _only_a_type(ir: QueryIR, word: TypeWord | None) -> bool:
    """Whether the name that was said is also just the word for the kind: a device called 空调, or Light."""
    if word is None or ir.name_hint is None or ir.type_word is None:
        return False
    name, said = spoken(ir.name_hint), ir.type_word
    return name in (said, singular(said))


def _by_kind(home: Home, ir: QueryIR, ids: frozenset[str], word: TypeWord | None) -> set[str]:
    if word is not None:
        found = home.of_type(word, ids)
        called = {i for i in found if ir.type_word and ir.type_word in spoken(home.placed[i].device.name)}
        # 纱帘 is the one that is called so, where the home has one.
        return called if called and word.single and ir.quantifier == "one" else found
    types = _types_of_property(ir)
    if types:
        found = set[str]().union(*(home.by_type.get(name, set()) for name in types))
        return found & ids
    return {device_id for device_id in ids if not home.placed[device_id].device.members}


def _types_of_property(ir: QueryIR) -> frozenset[str]:
    """The types a bare property or value speaks of; asking may read a sensor, setting may not."""
    asking = "query" in meaning_of(ir.action).concepts
    if ir.property:
        if asking:
            return PROPERTY_TYPES.get(ir.property, frozenset())
        return frozenset({SET_TYPES[ir.property]}) if ir.property in SET_TYPES else frozenset()
    if ir.value is not None and (ir.value.unit == "%" or ir.value.extreme):
        return frozenset({next(iter(PERCENT_PROPERTY))})
    return frozenset()


def _named(match: NameMatch) -> str:
    how = {
        "exact": "is called",
        "alias": "is also called",
        "homophone": "sounds like",
        "part": "has it in its name",
        "fuzzy": "is nearly",
    }
    return f"{how[match.how]}: {match.name}"


def _placed(home: Home, device_id: str, word: TypeWord | None) -> str:
    placed = home.placed[device_id]
    parts = [f"is a {placed.type}"] if word is not None else []
    parts += [f"in {placed.room}"] if placed.room else []
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Scope:
    """The devices a QueryIR allows, and the places or names in it that this home does not have."""

    ids: frozenset[str]
    unknown_places: tuple[str, ...] = ()
    unknown_exclusions: tuple[str, ...] = ()


def filter_by_scope(devices: Iterable[Device], ir: QueryIR) -> list[Device]:
    """The devices inside `scope_include` and outside `scope_exclude`, in their order.

    A room that no device stands in leaves nothing: a command is never carried out elsewhere.
    """
    home = Home(devices)
    ids = scope_of(home, ir).ids
    return [device for device in home.devices if device.id in ids]


def scope_of(home: Home, ir: QueryIR) -> Scope:
    """The scope of a QueryIR in a home. Rooms are joined; a floor beside rooms narrows them (二楼的卧室)."""
    rooms, floors, unknown = set[str](), set[str](), []
    said_room = said_floor = False
    for place in ir.scope_include:
        found = home.in_place(place)
        if found is None:
            unknown.append(place)
        elif home.is_floor(place):
            said_floor = True
            floors |= found
        else:
            said_room = True
            rooms |= found
    if unknown:
        return Scope(frozenset(), tuple(unknown))
    ids = home.ids
    if said_room:
        ids = frozenset(rooms & floors) if said_floor else frozenset(rooms)
    elif said_floor:
        ids = frozenset(floors)
    strangers = []
    for item in ir.scope_exclude:
        excluded = excluded_by(home, item)
        if excluded is None:
            strangers.append(item)
        else:
            ids -= excluded
    places = tuple(item for item in strangers if says_a_room(spoken(item)))
    return Scope(frozenset(ids), places, tuple(item for item in strangers if item not in places))


def excluded_by(home: Home, item: str) -> set[str] | None:
    """The devices an exclusion means: a place, a name, a type, or a type in a place."""
    place = home.in_place(item)
    if place is not None:
        return place
    form = spoken(item)
    word = home.vocabulary.type_word(form)
    found = phrases(lex(form, home.vocabulary), form)
    if word is None and found and found[0].places and found[0].type is not None:
        places = [home.in_place(name) for name in found[0].places]
        inside = set[str]().union(*(known for known in places if known is not None))
        return inside & home.of_type(found[0].type) if all(known is not None for known in places) else None
    named = {match.device_id for match in home.names.find(item)}
    if named:
        return named
    if word is None and found and found[0].type is not None and not found[0].unknown:
        word = found[0].type
    return home.of_type(word) if word is not None else None
