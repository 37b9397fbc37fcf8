"""From a sentence to the devices and the command it means."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from homing.chat import ChatModel
from homing.devices.answer import Answer, DialogueState, Hint, Step
from homing.devices.candidate import NAME_HIT, Candidate
from homing.devices.capability import THRESHOLD, filter_by_capability
from homing.devices.device import CommandSpec, Device, Room
from homing.devices.home import Changes, Home
from homing.devices.lexicon.properties import PROPERTY_TYPES
from homing.devices.lexicon.types import ALWAYS_ASK
from homing.devices.meaning import command_meaning, meaning_of, wordings
from homing.devices.parsing import DEADLINE, parse_with
from homing.devices.query import LAST_MENTIONED, QueryIR
from homing.devices.questions import question_for
from homing.devices.recall import recall_within, type_word
from homing.devices.scope import scope_of
from homing.devices.similarity import SimilarityFunc, VectorSimilarity, default_similarity
from homing.devices.spoken import is_chinese
from homing.devices.values import fit, takes_values
from homing.devices.words_alike import word_similarity
from homing.embedders.provider import EmbeddingProvider
from homing.errors import EmbeddingError
from homing.legs import run_leg

logger = logging.getLogger(__name__)

VECTOR_DEADLINE = 5.0
"""Seconds that an answer waits for the vectors of commands."""
NOT_SWITCHED = ALWAYS_ASK | {"cover"}
"""What a sentence must name to move: "everything" does not mean them."""


class DeviceRetriever:
    """Answers sentences about one home.

    Commands are matched by `similarity_func` if given, else by the vectors of `embedder`, else by the bundled model;
    when the model fails or takes longer than `vector_deadline` seconds, by their words, and the answer says `degraded`.
    `chat` reads sentences before the rules do, within `deadline` seconds.
    Asking is safe from several threads; `update` is not safe beside it.
    """

    def __init__(
        self,
        devices: Iterable[Device] = (),
        rooms: Iterable[Room] = (),
        *,
        embedder: EmbeddingProvider | None = None,
        similarity_func: SimilarityFunc | None = None,
        chat: ChatModel | None = None,
        deadline: float = DEADLINE,
        vector_deadline: float = VECTOR_DEADLINE,
        threshold: float = THRESHOLD,
    ) -> None:
        self.home = Home(devices, rooms)
        self._vectors = None if similarity_func else VectorSimilarity(embedder) if embedder else default_similarity()
        self._similarity = similarity_func or self._vectors
        self._chat = chat
        self._deadline = deadline
        self._vector_deadline = vector_deadline
        self._threshold = threshold

    def update(self, devices: Iterable[Device], rooms: Iterable[Room] | None = None) -> Changes:
        """Makes the home these devices; only what changed is indexed, only new command texts embedded."""
        return self.home.update(devices, rooms)

    def prepare(self) -> int:
        """Embeds the texts of all commands now rather than at the first question; says how many were new."""
        if self._vectors is None:
            return 0
        specs: set[CommandSpec] = set()
        for device in self.home.devices:
            specs.update(device.commands)
        return self._vectors.prepare(
            text for spec in sorted(specs, key=lambda spec: spec.id) for text in wordings(spec)
        )

    def ask(self, text: str, *, state: DialogueState | None = None, room: str | None = None) -> Answer:
        """The devices a sentence means, with the command each is to be given, or a question.

        `room` is where the speaker is: it decides where the sentence names no place. `state` is what the last answer
        carried.
        """
        state = state or DialogueState()
        irs = [_resumed(ir, state) for ir in parse_with(text, self.home.vocabulary, self._chat, self._deadline)]
        matched = run_leg(
            "vector", lambda: self._answer(irs, state, room, self._similarity), deadline=self._vector_deadline
        )
        if matched.value is not None:
            return matched.value
        assert matched.error is not None
        if not isinstance(matched.error, EmbeddingError):
            raise matched.error
        logger.warning("Command vectors are not available, commands are matched by their words: %s", matched.error)
        return replace(self._answer(irs, state, room, word_similarity), degraded=True, reason=matched.code)

    def _answer(
        self, irs: list[QueryIR], state: DialogueState, room: str | None, similar: SimilarityFunc | None
    ) -> Answer:
        steps = []
        for ir in irs:
            step = self._step(ir, state, room, similar)
            steps.append(step)
            state = _next_state(state, step)
        return Answer(tuple(steps), state)

    def _step(self, ir: QueryIR, state: DialogueState, room: str | None, similar: SimilarityFunc | None) -> Step:
        chinese = is_chinese(ir.raw)
        if ir.negated or ir.deferred:
            return _refused(ir, "negated" if ir.negated else "deferred", chinese)
        if not ir.action:
            return _refused(ir, "not_understood", chinese)
        place_needed = "here" in ir.references and not ir.scope_include
        if place_needed and room is None:
            return _asked(ir, "unknown_room", chinese, what="这里" if chinese else "here")
        scoped = ir.model_copy(update={"scope_include": (room,)}) if place_needed and room else ir
        scope = scope_of(self.home, scoped)
        for place in scope.unknown_places:
            near = self.home.vocabulary.near_places(place) or [known.name for known in self.home.rooms]
            return _asked(ir, "unknown_room", chinese, what=place, offers=near)
        for stranger in scope.unknown_exclusions:
            return _asked(ir, "unknown_device", chinese, what=stranger, offers=self._near(stranger))
        bare = _says_no_object(ir)
        if LAST_MENTIONED in ir.references or bare:
            referred = self._refer(scoped, state, room, scope.ids, similar, chinese)
            silent = bare and LAST_MENTIONED not in ir.references
            if referred.decision == "act" or not (silent and (ir.property or ir.value)):
                return referred
        candidates = self._recall(scoped, room, scope.ids)
        if not candidates:
            what = ir.name_hint or ir.type_word or ir.type_hint or ir.raw
            return _asked(ir, "unknown_device", chinese, what=what, offers=self._near(ir.name_hint))
        return self._decide(
            scoped, candidates, bool(scoped.scope_include) or self._in_room(candidates, room), similar, chinese
        )

    def _recall(self, ir: QueryIR, room: str | None, ids: frozenset[str]) -> list[Candidate]:
        """The speaker's room decides between candidates, but rules none out that the sentence names uniquely."""
        found = recall_within(self.home, ir, ids)
        if room is None or ir.scope_include or ir.quantifier in ("all", "except") or len(found) < 2:
            return found
        here = self.home.in_place(room) or set()
        near = [candidate for candidate in found if candidate.device.id in here]
        return near or found

    def _in_room(self, candidates: list[Candidate], room: str | None) -> bool:
        here = self.home.in_place(room) if room else None
        return bool(here) and all(candidate.device.id in (here or ()) for candidate in candidates)

    def _refer(
        self, ir: QueryIR, state: DialogueState, room: str | None, ids: frozenset[str], similar: SimilarityFunc | None,
        chinese: bool,
    ) -> Step:  # fmt: skip
        """那个, it, or nothing at all: what was last spoken of, narrowed by whatever else was said."""
        word = type_word(self.home, ir)
        last = [i for i in state.last if i in self.home.placed and i in ids]
        if word is not None:
            last = [device_id for device_id in last if self.home.fits(device_id, word)]
        if not last:
            if word is not None and room is not None:
                plain = ir.model_copy(update={"references": ()})
                return self._decide(plain, self._recall(plain, room, ids), True, similar, chinese)
            return _asked(ir, "no_reference", chinese)
        found = [
            Candidate(self.home.placed[i].device, 0.9, (NAME_HIT,), explanation="was last mentioned") for i in last
        ]
        return self._decide(ir, found, True, similar, chinese)

    def _decide(
        self, ir: QueryIR, candidates: list[Candidate], group: bool, similar: SimilarityFunc | None, chinese: bool
    ) -> Step:
        members = self._members(candidates)
        able = self._able(ir, members, similar)
        if not able:
            names = [candidate.device.name for candidate in candidates]
            return _refused(ir, "no_matching_command", chinese, what="、".join(names[:3]) or ir.raw, offers=names)
        able = _best_tier(ir, able)
        expanded = len(members) > len(candidates)
        if len(able) > 1 and not expanded and not self._may_act_on_all(ir, able, group):
            if ir.quantifier == "any":
                able = able[:1]
            else:
                return _asked(ir, "multiple_close_matches", chinese, offers=self._told_apart(able), candidates=able)
        if _lacks_value(ir, able):
            return _asked(ir, "missing_value", chinese, candidates=able)
        for candidate in able:
            allowed = _refused_value(ir, candidate)
            if allowed is not None:
                return _refused(ir, "value_out_of_range", chinese, what=allowed, candidates=able)
        return Step(ir, "act", tuple(able))

    def _able(self, ir: QueryIR, candidates: list[Candidate], similar: SimilarityFunc | None) -> list[Candidate]:
        able = filter_by_capability(candidates, ir, similarity_func=similar, threshold=self._threshold)
        untyped = ir.type_hint is None and ir.name_hint is None and LAST_MENTIONED not in ir.references
        if untyped and ir.property is None and ir.quantifier in ("all", "except"):
            able = [candidate for candidate in able if self._means_everything(ir, candidate)]
        if able or "query" not in meaning_of(ir.action).concepts:
            return able
        if meaning_of(ir.action).rest:
            return []
        # A state can be read without a command for it, from a device that has what is asked for.
        types = PROPERTY_TYPES.get(ir.property or "", frozenset())
        return [candidate for candidate in candidates if not types or self._type(candidate) in types]

    def _means_everything(self, ir: QueryIR, candidate: Candidate) -> bool:
        """Turning everything off closes no curtain and unlocks no door; opening everything opens covers, no lights."""
        asked, type_name = meaning_of(ir.action).concepts, self._type(candidate)
        if asked & {"on", "off"}:
            return type_name not in NOT_SWITCHED
        if asked & {"open", "close"}:
            return type_name == "cover"
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

    def _told_apart(self, candidates: list[Candidate]) -> list[str]:
        """Names, with the room where a name is not enough."""
        names = [candidate.device.name for candidate in candidates]
        return [
            f"{c.device.name} ({self.home.placed[c.device.id].room or c.device.id})"
            if names.count(c.device.name) > 1
            else c.device.name
            for c in candidates
        ]


def _best_tier(ir: QueryIR, able: list[Candidate]) -> list[Candidate]:
    """A device that was named wins over its kind, unless the sentence speaks of all of them."""
    named = [candidate for candidate in able if NAME_HIT in candidate.reasons]
    return named if named and ir.quantifier not in ("all", "except") else able


def _refused_value(ir: QueryIR, candidate: Candidate) -> str | None:
    if ir.value is None or candidate.command is None or not takes_values(candidate.command):
        return None
    return fit(ir.value, candidate.command).allowed


def _lacks_value(ir: QueryIR, able: list[Candidate]) -> bool:
    """设置台灯: to what?"""
    if "set" not in meaning_of(ir.action).concepts or ir.value is not None:
        return False
    return any(candidate.command is not None and takes_values(candidate.command) for candidate in able)


def _says_no_object(ir: QueryIR) -> bool:
    """Only a verb: 再亮一点, 关掉."""
    said = ir.name_hint or ir.type_hint or ir.scope_include or ir.scope_exclude or "here" in ir.references
    return not said and not ir.type_word


def _resumed(ir: QueryIR, state: DialogueState) -> QueryIR:
    """卧室的 after "which one?" completes what was asked about; 客厅的也关掉 inherits the kind of device."""
    pending = state.pending
    if pending is not None and pending.value is None and ir.value is not None and _says_no_object(ir):
        return pending.model_copy(update={"value": ir.value})
    if (
        pending is not None
        and not ir.action
        and (ir.scope_include or ir.name_hint or ir.type_hint or ir.quantifier != "one")
    ):
        update = {
            field: getattr(ir, field)
            for field in ("name_hint", "type_hint", "type_word", "scope_include", "scope_exclude")
            if getattr(ir, field)
        }
        quantifier = ir.quantifier if ir.quantifier != "one" else pending.quantifier
        return pending.model_copy(update={**update, "quantifier": quantifier, "references": ()})
    bare_place = ir.scope_include and not (ir.name_hint or ir.type_hint or ir.property or ir.value)
    if bare_place and ir.action and ir.quantifier == "one" and state.type_hint:
        return ir.model_copy(update={"type_hint": state.type_hint, "type_word": state.type_word})
    return ir


def _next_state(state: DialogueState, step: Step) -> DialogueState:
    if step.decision == "refuse":
        return replace(state, pending=None)
    ids = tuple(candidate.device.id for candidate in step.candidates)
    return DialogueState(
        last=ids if ids and step.decision == "act" else state.last,
        type_hint=step.ir.type_hint or (state.type_hint if step.decision == "ask" else None),
        type_word=step.ir.type_word or (state.type_word if step.decision == "ask" else None),
        pending=step.ir if step.decision == "ask" else None,
    )


def _asked(
    ir: QueryIR,
    hint: Hint,
    chinese: bool,
    *,
    what: str = "",
    offers: Iterable[str] = (),
    candidates: Iterable[Candidate] = (),
) -> Step:
    names = tuple(offers)
    return Step(ir, "ask", tuple(candidates), hint, question_for(hint, chinese, what=what, offers=names), names)


def _refused(
    ir: QueryIR,
    hint: Hint,
    chinese: bool,
    *,
    what: str = "",
    offers: Iterable[str] = (),
    candidates: Iterable[Candidate] = (),
) -> Step:
    return replace(_asked(ir, hint, chinese, what=what, offers=offers, candidates=candidates), decision="refuse")
