"""Where: the hard filter that comes before everything else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homing.devices.device import Device
from homing.devices.home import Home
from homing.devices.lexer import lex
from homing.devices.lexicon.rooms import says_a_room
from homing.devices.phrases import phrases
from homing.devices.query import QueryIR
from homing.devices.spoken import spoken


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
        excluded = _excluded(home, item)
        if excluded is None:
            strangers.append(item)
        else:
            ids -= excluded
    places = tuple(item for item in strangers if says_a_room(spoken(item)))
    return Scope(frozenset(ids), places, tuple(item for item in strangers if item not in places))


def _excluded(home: Home, item: str) -> set[str] | None:
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
