"""Whether to act, to confirm, to ask, to answer or to refuse: what a QueryIR does to the devices of a home.

Nothing acts that is no command, was not understood, is forbidden or for another time, or could mean several devices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from homing.devices.answer import NAME_HIT, Candidate, DialogueState, Step, deed, undone
from homing.devices.candidates import excluded_by, recall_within, scope_of, type_word
from homing.devices.home import Home
from homing.devices.lexicon.actions import CANONICAL, canonical
from homing.devices.lexicon.things import ALWAYS_ASK, ROOM_CONCEPTS
from homing.devices.lexicon.values import PROPERTY_TYPES, PROPERTY_WORDS
from homing.devices.matching import filter_by_capability, fit, own_commands, shares_words, takes_values
from homing.devices.query import LAST_MENTIONED, REST, QueryIR, SpokenValue
from homing.devices.risk import OPENS, gives_water, needs_confirmation
from homing.devices.similarity import SimilarityFunc, command_meaning, meaning_of
from homing.devices.vocabulary import is_chinese, singular, spoken

NOT_SWITCHED = (ALWAYS_ASK - {"oven"}) | {"cover", "scene", "script", "vacuum", "lawn_mower", "drying_rack"}
"""What a sentence must name to move: "everything" does not mean them."""
SCENES = frozenset({"scene", "script"})
MEASURES_AIR = frozenset({"climate", "sensor", "weather"})
"""What tells how warm a room is; an oven tells how warm it is itself."""
_ALL = re.compile(r"\b(?:all|every|each|everything|others?|rest)\b|所有|全|都|其|每|各|晒|除")
_EVERYWHERE = re.compile("所有|全部|每|家|整|一切|统统|通通|各")


@dataclass(frozen=True, slots=True)
class Acting:
    """Decides about the devices of a home; commands are matched by `similar`, from `threshold` on."""

    home: Home
    similar: SimilarityFunc | None
    threshold: float

    def step(self, ir: QueryIR, state: DialogueState, room: str | None, *, confirmed: bool = False) -> Step:
        """What one command comes to, said in this room after what was said before; `confirmed` by the speaker."""
        if ir.mood in ("statement", "quotation"):
            return undone("refuse", ir, "not_a_command")
        if ir.negated or ir.deferred:
            return undone("refuse", ir, "negated" if ir.negated else "deferred")
        if ir.mood == "question" and "query" not in meaning_of(ir.action).concepts:
            ir = ir.model_copy(update={"action": CANONICAL["query"][0 if is_chinese(ir.raw) else 1], "value": None})
        ir = ir if ir.action else self._implied(ir)
        if not ir.action:
            known = ir.type_hint is not None or bool(ir.name_hint and self.home.names.find(ir.name_hint))
            return undone("ask" if known and ir.mood == "command" else "refuse", ir, "not_understood")
        if REST in ir.references and "here" in ir.references and room:
            away = ir.model_copy(update={"references": (), "scope_exclude": (room,), "quantifier": "except"})
            return self.step(away, state, room, confirmed=confirmed)
        place_needed = "here" in ir.references and not ir.scope_include
        if place_needed and room is None and ir.mood == "complaint":
            ir, place_needed = ir.model_copy(update={"references": ()}), False
        if place_needed and room is None:
            return undone("ask", ir, "unknown_room", what="这里" if is_chinese(ir.raw) else "here")
        scoped = ir.model_copy(update={"scope_include": (room,)}) if place_needed and room else ir
        if ir.mood == "complaint" and room and not scoped.scope_include:
            scoped = ir.model_copy(update={"scope_include": (room,)})
        scope = scope_of(self.home, scoped)
        for place in scope.unknown_places:
            near = self.home.vocabulary.near_places(place) or self.home.vocabulary.rooms_of_a_kind(place)
            near = near or [known.name for known in self.home.rooms]
            return undone("ask", ir, "unknown_room", what=place, offers=near)
        for stranger in scope.unknown_exclusions:
            return undone("ask", ir, "unknown_device", what=stranger, offers=self._near(stranger))
        if REST in ir.references:
            return self._rest(scoped, state, room, scope.ids, confirmed)
        ways_in = self._ways_in(scoped, scope.ids)
        if ways_in:
            return self._decide(scoped, ways_in, False, confirmed)
        if "clean" in meaning_of(ir.action).concepts and scoped.scope_include:
            return self._clean(scoped, scope.ids, confirmed)
        implied = ir.type_hint is not None and ir.type_word is None and ir.name_hint is None and not ir.scope_include
        if ir.says_no_object() and not state.last and LAST_MENTIONED not in ir.references:
            if ir.quantifier == "all" and room and not ir.property:
                return self.step(ir.model_copy(update={"scope_include": (room,)}), state, room, confirmed=confirmed)
            robots = self._only_ones(ir)
            if robots:
                return self._decide(scoped, robots, False, confirmed)
        bare = ir.says_no_object() or (implied and bool(state.last) and ir.value is None)
        if LAST_MENTIONED in ir.references and not state.last and not ir.type_hint:
            # Nothing was spoken of: in "make it warmer" and "turn it up" it is the room, or what plays in it.
            about = ir.property or (
                "volume" if meaning_of(ir.action).concepts <= {"up", "down"} and not ir.value else None
            )
            if about and room and not ir.name_hint:
                plain = ir.model_copy(update={"references": (), "scope_include": (room,), "property": about})
                found = recall_within(self.home, plain, frozenset(self.home.in_place(room) or ()))
                if len(found) == 1 or (found and ir.property):
                    return self._decide(plain, found, True, confirmed)
        if LAST_MENTIONED in ir.references or bare:
            plain = scoped.model_copy(update={"type_hint": None}) if implied else scoped
            referred = self._refer(plain, state, room, scope.ids, confirmed)
            silent = bare and LAST_MENTIONED not in ir.references
            if referred.decision in ("act", "confirm") or not (silent and (ir.property or ir.value or implied)):
                return referred
        candidates = self._recall(scoped, room, scope.ids)
        if not candidates:
            if ir.mood == "complaint":
                return undone("refuse", ir, "not_a_command")
            what = ir.name_hint or ir.type_word or self._kind(ir) or ir.raw
            where = "、".join(scoped.scope_include) if is_chinese(ir.raw) else ", ".join(scoped.scope_include)
            near = self._near(ir.name_hint)
            idle = "query" in meaning_of(ir.action).concepts and not (near or ir.type_hint or scoped.scope_include)
            return undone("refuse" if idle else "ask", ir, "unknown_device", what=what, where=where, offers=near)
        group = bool(scoped.scope_include) or self._in_room(candidates, room)
        return self._decide(scoped, candidates, group, confirmed)

    def _implied(self, ir: QueryIR) -> QueryIR:
        """A scene is started by its name, and a command of its own verb by what it says: 喂猫 is 投喂宠物."""
        if ir.mood != "command":
            return ir
        named = [match.device_id for match in self.home.names.find(ir.name_hint)] if ir.name_hint else []
        if named and all(self.home.placed[device_id].type in SCENES for device_id in named):
            return ir.model_copy(update={"action": CANONICAL["on"][0 if is_chinese(ir.raw) else 1]})
        if named or ir.scope_include or ir.type_hint:
            return ir
        device = own_commands(self.home.devices, ir.raw, self.similar)
        return ir if device is None else ir.model_copy(update={"action": ir.raw, "name_hint": device.name})

    def _kind(self, ir: QueryIR) -> str | None:
        """How the kind of device, or the property, that was looked for is said."""
        words = PROPERTY_WORDS.get(ir.property or "")
        return words[0 if is_chinese(ir.raw) else 1] if words else ir.type_hint

    def _recall(self, ir: QueryIR, room: str | None, ids: frozenset[str]) -> list[Candidate]:
        """The speaker's room decides between candidates, but rules none out that the sentence names uniquely."""
        found = recall_within(self.home, ir, ids)
        whole = ir.quantifier in ("all", "except") and not self._only_here(ir, room)
        if room is None or ir.scope_include or whole or len(found) < 2:
            return found
        here = self.home.in_place(room) or set()
        near = [candidate for candidate in found if candidate.device.id in here]
        return near or found

    def _only_here(self, ir: QueryIR, room: str | None) -> bool:
        """全都关了 and 把灯都关了, said in a room, mean that room; 所有 and "all" mean the home."""
        return (
            room is not None
            and ir.quantifier == "all"
            and is_chinese(ir.raw)
            and not _EVERYWHERE.search(spoken(ir.raw))
        )

    def _in_room(self, candidates: list[Candidate], room: str | None) -> bool:
        here = self.home.in_place(room) if room else None
        return bool(here) and all(candidate.device.id in (here or ()) for candidate in candidates)

    def _rest(self, ir: QueryIR, state: DialogueState, room: str | None, ids: frozenset[str], confirmed: bool) -> Step:
        """其他的关掉: the devices of the same kind beside those that were spoken of, or that stay as they are."""
        kept = set[str]().union(*(excluded_by(self.home, item) or set() for item in ir.scope_exclude)) or set(
            state.last
        )
        known = [self.home.placed[device_id] for device_id in kept if device_id in self.home.placed]
        # 只留厨房的灯: beside a whole room stand the other rooms, and its devices do not say of which kind the rest is.
        whole_room = any(self.home.in_place(item) for item in ir.scope_exclude)
        if not known or (whole_room and ir.type_hint is None):
            return undone("ask", ir, "unknown_device", what=ir.type_word or ir.raw)
        if not ir.scope_include and not whole_room:
            around = {room} if room else {placed.room for placed in known if placed.room}
            near = ids & frozenset().union(*(self.home.in_place(place) or set() for place in around if place))
        else:
            near = ids
        types = {placed.type for placed in known}
        plain = ir.model_copy(update={"references": (), "quantifier": "all", "name_hint": None})
        if plain.type_hint is None:
            plain = plain.model_copy(update={"type_hint": sorted(types)[0]})
        found = recall_within(self.home, plain, near - kept)
        if not found and ir.scope_exclude and room is None:
            # 只留玄关灯, the only lamp there: the rest is elsewhere.
            found = recall_within(self.home, plain, ids - kept)
        return self._decide(plain, found, True, confirmed)

    def _clean(self, ir: QueryIR, ids: frozenset[str], confirmed: bool) -> Step:
        """清扫厨房: the robot goes where it is told, wherever it stands; one that cannot be told must stand there."""
        plain = ir.model_copy(update={"scope_include": (), "type_hint": ir.type_hint or "vacuum"})
        robots = recall_within(self.home, plain, self.home.ids)
        there = [candidate for candidate in robots if candidate.device.id in ids]
        area = plain.model_copy(
            update={
                "property": "area",
                "action": canonical(frozenset({"clean"}), None, "area", is_chinese(ir.raw)),
                "value": SpokenValue(text=", ".join(ir.scope_include)),
            }
        )
        told = self._able(area, there or robots)
        if told:
            return self._decide(area, told, bool(there), confirmed)
        if not there:
            what = ir.type_word or self._kind(ir) or ir.raw
            return undone("ask", ir, "unknown_device", what=what, where=", ".join(ir.scope_include))
        return self._decide(plain, there, True, confirmed)

    def _ways_in(self, ir: QueryIR, ids: frozenset[str]) -> list[Candidate]:
        """Open the garage: of a garage, the door is meant, and nothing else that is in it."""
        said = [ROOM_CONCEPTS.get(spoken(place)) for place in ir.scope_include]
        if said != ["garage"] or ir.type_hint or ir.value or not meaning_of(ir.action).concepts & {"open", "close"}:
            return []
        placed = [self.home.placed[device_id] for device_id in sorted(ids)]
        doors = [door.device for door in placed if door.type == "cover" and door.classes & OPENS]
        return [Candidate(door, 0.8, explanation="is the way in") for door in doors]

    def _only_ones(self, ir: QueryIR) -> list[Candidate]:
        """回去充电, "disarm", 浇水: what only one kind of device does needs no name."""
        does = meaning_of(ir.action).concepts | (meaning_of(ir.raw).concepts & {"water"})
        if not does & {"dock", "arm", "disarm", "water"}:
            return []
        types = ("valve", "switch") if "water" in does else ("vacuum", "lawn_mower", "alarm")
        ids = [device_id for name in types for device_id in sorted(self.home.by_type.get(name, ()))]
        if "water" in does:
            ids = [device_id for device_id in ids if gives_water(self.home.placed[device_id])]
        return self._able(ir, [Candidate(self.home.placed[i].device, 0.7) for i in ids])

    def _refer(self, ir: QueryIR, state: DialogueState, room: str | None, ids: frozenset[str], confirmed: bool) -> Step:
        """那个, it, or nothing at all: what was last spoken of, narrowed by whatever else was said."""
        word = type_word(self.home, ir)
        last = [i for i in state.last if i in self.home.placed and i in ids]
        if word is not None:
            last = [device_id for device_id in last if self.home.fits(device_id, word)]
        if not last:
            if word is not None and room is not None:
                plain = ir.model_copy(update={"references": ()})
                return self._decide(plain, self._recall(plain, room, ids), True, confirmed)
            return undone("ask", ir, "no_reference")
        found = [
            Candidate(self.home.placed[i].device, 0.9, (NAME_HIT,), explanation="was last mentioned") for i in last
        ]
        return self._decide(ir, found, True, confirmed)

    def _decide(self, ir: QueryIR, candidates: list[Candidate], group: bool, confirmed: bool) -> Step:
        members = self._members(candidates)
        if members and all(self._type(candidate) in SCENES for candidate in members):
            ir = _started(ir)
        able = self._able(ir, members)
        if not able:
            names = [candidate.device.name for candidate in candidates]
            return undone("refuse", ir, "no_matching_command", what="、".join(names[:3]) or ir.raw, offers=names)
        able = _best_tier(ir, able)
        expanded = len(members) > len(candidates)
        if len(able) > 1 and not expanded and not self._may_act_on_all(ir, able, group):
            if ir.quantifier == "any":
                able = able[:1]
            else:
                return undone("ask", ir, "multiple_close_matches", offers=self._distinct_names(able), candidates=able)
        if "query" in meaning_of(ir.action).concepts:
            return Step(ir, "answer", tuple(able))
        if _lacks_value(ir, able):
            return undone("ask", ir, "missing_value", candidates=able)
        for candidate in able:
            allowed = _refused_value(ir, candidate)
            if allowed is not None:
                return undone("refuse", ir, "value_out_of_range", what=allowed, candidates=able)
        if ir.mood == "complaint" and not confirmed:
            return undone("ask", ir, "complaint", what=self._told(ir, able), candidates=able)
        if not confirmed and (not _is_plain(ir, able) or any(self._risky(candidate) for candidate in able)):
            return undone("confirm", ir, "confirm", what=self._told(ir, able), candidates=able)
        return Step(ir, "act", tuple(able))

    def _risky(self, candidate: Candidate) -> bool:
        return needs_confirmation(self.home.placed[candidate.device.id], candidate.command)

    def _told(self, ir: QueryIR, able: list[Candidate]) -> str:
        """What would be done, in words: 解锁大门; unlock the Front Door."""
        chinese = is_chinese(ir.raw)
        names = self._distinct_names(able)
        listed = ("、" if chinese else ", ").join(names[:6]) + ("…" if len(names) > 6 else "")
        does = meaning_of(ir.action).concepts
        command = able[0].command
        if command is not None and not does & {"set", "up", "down"}:
            does = command_meaning(command).concepts & does or command_meaning(command).concepts or does
            does = does - {"on", "off"} if self._type(able[0]) in ("cover", "valve", "lock") else does
        return deed(does, ir, listed, chinese)

    def _able(self, ir: QueryIR, candidates: list[Candidate]) -> list[Candidate]:
        able = filter_by_capability(candidates, ir, similarity_func=self.similar, threshold=self.threshold)
        untyped = ir.type_hint is None and ir.name_hint is None and LAST_MENTIONED not in ir.references
        if untyped and ir.property is None and ir.quantifier in ("all", "except"):
            able = [candidate for candidate in able if self._means_everything(ir, candidate)]
        if able or "query" not in meaning_of(ir.action).concepts:
            return able
        if meaning_of(ir.action).rest:
            return []
        # A state can be read without a command for it, from a device that has what is asked for.
        types = PROPERTY_TYPES.get(ir.property or "", frozenset())
        able = [candidate for candidate in candidates if not types or self._type(candidate) in types]
        of_air = [candidate for candidate in able if self._type(candidate) in MEASURES_AIR]
        return of_air if untyped and ir.property == "temperature" and of_air else able

    def _means_everything(self, ir: QueryIR, candidate: Candidate) -> bool:
        """Turning everything off closes no curtain and unlocks no door; opening everything opens covers, no lights."""
        asked, type_name = meaning_of(ir.action).concepts, self._type(candidate)
        if type_name in SCENES or self._risky(candidate):
            return False
        if asked & {"on", "off"}:
            return type_name not in NOT_SWITCHED
        if asked & {"open", "close"}:
            return False
        if type_name in ALWAYS_ASK and "lock" not in asked:
            return False
        return candidate.command is not None and bool(asked & command_meaning(candidate.command).concepts)

    def _members(self, candidates: list[Candidate]) -> list[Candidate]:
        """A group without commands of its own stands for its members."""
        found: dict[str, Candidate] = {}
        for candidate in candidates:
            device = candidate.device
            if device.members and not device.commands:
                for member in device.members:
                    if member in self.home.placed:
                        part = replace(
                            candidate, device=self.home.placed[member].device, explanation=f"in {device.name}"
                        )
                        found.setdefault(member, part)
            else:
                found.setdefault(device.id, candidate)
        return list(found.values())

    def _may_act_on_all(self, ir: QueryIR, able: list[Candidate], group: bool) -> bool:
        if ir.quantifier in ("all", "except") or "query" in meaning_of(ir.action).concepts:
            return True
        if ir.quantifier == "any":
            return False
        if any(self._type(candidate) in ALWAYS_ASK for candidate in able):
            return False
        if LAST_MENTIONED in ir.references:
            return True
        named = ir.name_hint is not None and NAME_HIT in able[0].reasons
        says_what = ir.type_hint is not None or ir.property is not None or ir.value is not None
        return group and says_what and not named

    def _type(self, candidate: Candidate) -> str:
        return self.home.placed[candidate.device.id].type

    def _near(self, name: str | None) -> list[str]:
        return list(dict.fromkeys(match.name for match in self.home.names.near(name))) if name else []

    def _distinct_names(self, candidates: list[Candidate]) -> list[str]:
        """Names, with the room where a name is not enough."""
        names = [candidate.device.name for candidate in candidates]
        return [
            f"{c.device.name} ({self.home.placed[c.device.id].room or c.device.id})"
            if names.count(c.device.name) > 1
            else c.device.name
            for c in candidates
        ]


def _is_plain(ir: QueryIR, able: list[Candidate]) -> bool:
    """Whether it has the form of a command, and a verb that is known, or that the command has in its words."""
    clear = ir.clear or _by_words_of_the_name(ir, able)
    if meaning_of(ir.action).concepts:
        return clear
    return clear and all(c.command is not None and shares_words(ir.action, c.command) for c in able)


def _by_words_of_the_name(ir: QueryIR, able: list[Candidate]) -> bool:
    """Both bedside lamps on: the words that nobody else knows are the devices' own."""
    said = {singular(word) or word for word in spoken(ir.name_hint or "").split()}
    return bool(said) and all(said <= set(spoken(candidate.device.name).split()) for candidate in able)


def _started(ir: QueryIR) -> QueryIR:
    """切换到观影模式 starts the scene."""
    if meaning_of(ir.action).concepts & {"off", "stop", "query", "close"}:
        return ir
    return ir.model_copy(update={"action": CANONICAL["on"][0 if is_chinese(ir.action) else 1], "property": None})


def _best_tier(ir: QueryIR, able: list[Candidate]) -> list[Candidate]:
    """A device that was named wins over its kind, unless the sentence speaks of all of them."""
    named = [candidate for candidate in able if NAME_HIT in candidate.reasons]
    said_all = ir.quantifier == "all" or (ir.quantifier == "except" and _ALL.search(spoken(ir.raw)))
    return named if named and not said_all else able


def _refused_value(ir: QueryIR, candidate: Candidate) -> str | None:
    if ir.value is None or candidate.command is None or not takes_values(candidate.command):
        return None
    return fit(ir.value, candidate.command).allowed


def _lacks_value(ir: QueryIR, able: list[Candidate]) -> bool:
    """设置台灯: to what?"""
    if "set" not in meaning_of(ir.action).concepts or ir.value is not None:
        return False
    return any(candidate.command is not None and takes_values(candidate.command) for candidate in able)
