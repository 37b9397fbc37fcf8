"""From a sentence to the devices and the command it means."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from homing.chat import ChatModel
from homing.devices.acting import Acting
from homing.devices.answer import Answer, DialogueState, Step
from homing.devices.device import CommandSpec, Device, Room
from homing.devices.home import Changes, Home
from homing.devices.matching import THRESHOLD
from homing.devices.parsing.parse import DEADLINE, GuardedChat, parse_with
from homing.devices.query import LAST_MENTIONED, QueryIR
from homing.devices.replies import chosen_from, says_yes, without_yes
from homing.devices.similarity import (
    SimilarityFunc,
    VectorSimilarity,
    default_similarity,
    meaning_of,
    word_similarity,
    wordings,
)
from homing.devices.vocabulary import spoken
from homing.embedders.provider import EmbeddingProvider, is_in_process
from homing.errors import EmbeddingError
from homing.legs import run_leg

logger = logging.getLogger(__name__)

VECTOR_DEADLINE = 5.0
"""Seconds that an answer waits for the vectors of commands."""


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
        self._waits = bool(similarity_func or (embedder and not is_in_process(embedder)))
        self._chat = GuardedChat(chat) if chat is not None else None
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
        irs, state, confirmed = self._read(text, state)
        matched = run_leg(
            "vector",
            lambda: self._answer(irs, state, room, self._similarity, confirmed),
            deadline=self._vector_deadline,
            waits=self._waits,
        )
        if matched.value is not None:
            return matched.value
        assert matched.error is not None
        if not isinstance(matched.error, EmbeddingError):
            raise matched.error
        logger.warning("Command vectors are not available, commands are matched by their words: %s", matched.error)
        return replace(self._answer(irs, state, room, word_similarity, confirmed), degraded=True, reason=matched.code)

    def _read(self, text: str, state: DialogueState) -> tuple[list[QueryIR], DialogueState, bool]:
        """The commands of a sentence, which may answer a question; and whether it confirms what was asked about."""
        pending = state.pending
        offered = [i for i in state.offered if i in self.home.placed]
        if pending is not None and says_yes(text):
            agreed = pending.model_copy(update={"mood": "command", "clear": True})
            return [_about(agreed, state.offered)], replace(state, last=tuple(offered) or state.last), True
        irs = parse_with(text, self.home.vocabulary, self._chat, self._deadline)
        first = irs[0]
        if pending is None or len(irs) > 1 or first.negated or first.deferred:
            return [_resumed(ir, state) for ir in irs], state, False
        if first.action:
            rest = without_yes(text)
            again = parse_with(rest, self.home.vocabulary, None)[0] if rest != spoken(text) else first
            same = meaning_of(again.action).concepts & meaning_of(pending.action).concepts
            if rest != spoken(text) and again.says_no_object() and same:
                agreed = pending.model_copy(update={"mood": "command", "clear": True})
                return [_about(agreed, state.offered)], replace(state, last=tuple(offered)), True
            if first.value is None or not first.says_no_object():
                return [_resumed(ir, state) for ir in irs], state, False
        names = [self.home.placed[device_id].device.name for device_id in offered]
        chosen = [offered[position] for position in chosen_from(text, names)]
        if chosen and (len(chosen) < len(offered) or first.quantifier == "all" or not first.name_hint):
            agreed = pending.model_copy(update={"mood": "command"})
            return [_about(agreed, tuple(chosen))], replace(state, last=tuple(chosen)), False
        return [_resumed(first, state)], state, False

    def _answer(
        self,
        irs: list[QueryIR],
        state: DialogueState,
        room: str | None,
        similar: SimilarityFunc | None,
        confirmed: bool,
    ) -> Answer:
        acting, steps = Acting(self.home, similar, self._threshold), []
        for ir in irs:
            step = acting.step(ir, state, room, confirmed=confirmed)
            steps.append(step)
            state = _next_state(state, step)
        return Answer(tuple(steps), state)


def _about(ir: QueryIR, ids: tuple[str, ...]) -> QueryIR:
    """The same command for the devices that were chosen, which are the last mentioned."""
    if not ids:
        return ir
    unsaid: dict[str, object] = dict.fromkeys(("name_hint", "type_hint", "type_word"))
    return ir.model_copy(
        update={
            **unsaid,
            "scope_include": (),
            "scope_exclude": (),
            "references": (LAST_MENTIONED,),
            "quantifier": "all",
        }
    )


def _resumed(ir: QueryIR, state: DialogueState) -> QueryIR:
    """卧室的 after "which one?" completes what was asked about; 客厅的也关掉 inherits the kind of device."""
    pending = state.pending
    if pending is not None and pending.value is None and ir.value is not None and ir.says_no_object():
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
    open_question = step.decision in ("ask", "confirm")
    return DialogueState(
        last=ids if ids and step.decision in ("act", "answer") else state.last,
        type_hint=step.ir.type_hint or (state.type_hint if open_question else None),
        type_word=step.ir.type_word or (state.type_word if open_question else None),
        pending=step.ir if open_question else None,
        offered=ids if open_question else (),
    )
