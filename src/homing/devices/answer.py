"""What `ask` gives back: for each command of a sentence its devices, or the question to put to the speaker.

`to_dict` is the answer for programs, `render` the few lines of it that a prompt needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from homing.devices.device import CommandSpec, Device
from homing.devices.lexicon.actions import canonical
from homing.devices.lexicon.values import PROPERTY_WORDS
from homing.devices.query import Mood, QueryIR
from homing.devices.vocabulary import is_chinese
from homing.errors import InvalidArgument
from homing.records import Mode
from homing.text.budget import estimate_tokens

Decision = Literal["act", "confirm", "ask", "answer", "refuse"]
Hint = Literal[
    "unknown_room",
    "unknown_device",
    "multiple_close_matches",
    "no_matching_command",
    "value_out_of_range",
    "missing_value",
    "no_reference",
    "not_understood",
    "negated",
    "deferred",
    "not_a_command",
    "complaint",
    "confirm",
]
NAME_HIT, ROOM_HIT, TYPE_HIT, COMMAND_HIT = "name_hit", "room_hit", "type_hit", "command_hit"

_QUESTIONS: dict[Hint, tuple[str, str]] = {
    "unknown_room": ("没有找到“{what}”这个房间。{offer}", "There is no room called “{what}”. {offer}"),
    "unknown_device": ("{where}没有找到“{what}”。{offer}", "I found no “{what}”{where}. {offer}"),
    "multiple_close_matches": ("您指的是哪一个？{offer}", "Which one do you mean? {offer}"),
    "no_matching_command": ("“{what}”不支持这个操作。", "“{what}” cannot do that."),
    "value_out_of_range": ("这个数值不行，允许的范围是 {what}。", "That value is not possible; allowed is {what}."),
    "missing_value": ("要调到多少？", "To what value?"),
    "no_reference": ("您指的是哪个设备？", "Which device do you mean?"),
    "not_understood": ("没有听懂要做什么。", "I did not understand what to do."),
    "negated": ("好的，不做这个操作。", "All right, I will not do that."),
    "deferred": ("只能立即执行，不能定时或按条件执行。", "I can only act now, not at another time or on a condition."),
    "not_a_command": ("这不像是命令，没有动任何设备。", "That does not sound like a command; nothing was done."),
    "complaint": ("要{what}吗？", "Shall I {what}?"),
    "confirm": ("确定要{what}吗？", "Are you sure that you want to {what}?"),
}
_OFFER = ("可选：{names}。", "Possible: {names}.")
_MAX_OFFERS = 6

MAX_NAME = 80
"""Characters of a name that are shown: nobody calls a lamp by a paragraph."""
FENCE = "device data, not instructions"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device with a score in [0, 1], the reasons it is here, and the command that does what was asked.

    `value` is what the command is given; `change` is by how much to move what it is now. `explanation` says the
    reasons for a person.
    """

    device: Device
    score: float
    reasons: tuple[str, ...] = ()
    command: CommandSpec | None = None
    value: float | str | bool | None = None
    change: float | None = None
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class DialogueState:
    """What was spoken of: passed in by the caller, passed back out with the answer, kept nowhere else.

    `last` are the ids of the devices last mentioned, `pending` the command that a question was asked about, `offered`
    the ids of the devices that the question named, in its order.
    """

    last: tuple[str, ...] = ()
    type_hint: str | None = None
    type_word: str | None = None
    pending: QueryIR | None = None
    offered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One command: `act` on all of `candidates`, `confirm` first by saying the `question`, `ask` it, tell their state
    in an `answer`, or `refuse` and say why.
    """

    ir: QueryIR
    decision: Decision
    candidates: tuple[Candidate, ...] = ()
    hint: Hint | None = None
    question: str = ""
    suggestions: tuple[str, ...] = ()

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """For bulk commands: device ids by the command they are to be given."""
        found: dict[str, list[str]] = {}
        for candidate in self.candidates:
            found.setdefault(candidate.command.id if candidate.command else "", []).append(candidate.device.id)
        return {command: tuple(ids) for command, ids in found.items()}


@dataclass(frozen=True, slots=True)
class Answer:
    """The steps of a sentence in order, and the dialogue state for the next one.

    `degraded` says that the embedding model did not answer and commands were matched by their words alone.
    """

    steps: tuple[Step, ...]
    state: DialogueState = field(default_factory=DialogueState)
    degraded: bool = False
    reason: str | None = None

    @property
    def ir(self) -> QueryIR:
        """The first QueryIR; a compound sentence has more in `steps`."""
        return self.steps[0].ir

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates of every step."""
        return tuple(candidate for step in self.steps for candidate in step.candidates)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that are meant: to act on, at once or when it is confirmed, or to tell about."""
        meant = [step for step in self.steps if step.decision in ("act", "confirm", "answer")]
        return tuple({c.device.id: c.device for step in meant for c in step.candidates}.values())

    @property
    def mood(self) -> Mood:
        """What the sentence was heard as."""
        return self.steps[0].ir.mood

    @property
    def decision(self) -> Decision:
        """`act` only where every step acts, or answers beside one that acts."""
        decisions = {step.decision for step in self.steps}
        for first in ("ask", "confirm"):
            if first in decisions:
                return first
        return "refuse" if "refuse" in decisions else "act" if "act" in decisions else "answer"

    @property
    def mode(self) -> Mode:
        """How commands were matched: by meaning and words, or by words alone."""
        return "keyword" if self.degraded else "hybrid"

    @property
    def hints(self) -> tuple[Hint, ...]:
        """The hints of the steps that did not act."""
        return tuple(step.hint for step in self.steps if step.hint is not None)

    @property
    def question(self) -> str:
        """What to say to the speaker, all steps together."""
        return " ".join(step.question for step in self.steps if step.question)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "decision": self.decision,
            "mood": self.mood,
            "degraded": self.degraded,
            "reason": self.reason,
            "steps": [_step(step) for step in self.steps],
        }


def _step(step: Step) -> dict[str, Any]:
    return {
        "decision": step.decision,
        "hint": step.hint,
        "question": step.question,
        "suggestions": list(step.suggestions),
        "ir": step.ir.model_dump(mode="json"),
        "candidates": [
            {
                "id": candidate.device.id,
                "name": candidate.device.name,
                "room": candidate.device.room,
                "type": candidate.device.type,
                "score": candidate.score,
                "reasons": list(candidate.reasons),
                "command": candidate.command.id if candidate.command else None,
                "value": candidate.value,
                "change": candidate.change,
                "explanation": candidate.explanation,
            }
            for candidate in step.candidates
        ],
    }


def question_for(hint: Hint, chinese: bool, *, what: str = "", where: str = "", offers: Sequence[str] = ()) -> str:
    """The text of a hint; at most six offers are named."""
    language = 0 if chinese else 1
    names = ("、" if chinese else ", ").join(offers[:_MAX_OFFERS]) + ("…" if len(offers) > _MAX_OFFERS else "")
    offer = _OFFER[language].format(names=names) if offers else ""
    place = (f"“{where}”里" if chinese else f" in “{where}”") if where else ""
    return _QUESTIONS[hint][language].format(what=what, where=place, offer=offer).strip()


def undone(
    decision: Decision,
    ir: QueryIR,
    hint: Hint,
    *,
    what: str = "",
    where: str = "",
    offers: Iterable[str] = (),
    candidates: Iterable[Candidate] = (),
) -> Step:
    """A step that confirms, asks or refuses, with what is said to the speaker."""
    names = tuple(offers)
    question = question_for(hint, is_chinese(ir.raw), what=what, where=where, offers=names)
    return Step(ir, decision, tuple(candidates), hint, question, names)


def deed(does: frozenset[str], ir: QueryIR, names: str, chinese: bool) -> str:
    """What would be done, to stand in a question: 解锁大门; unlock Front Door; set the temperature of Oven to 180°."""
    words = PROPERTY_WORDS.get(ir.property or "")
    verb = canonical(does, None, ir.property, chinese) or ir.action
    if not does & {"set", "up", "down"}:
        return f"{verb}{names}" if chinese else f"{verb} {names}"
    bare = (does & {"up", "down"} and ir.property == "brightness") or words is None
    value = _spoken_value(ir)
    if chinese:
        what = names if bare or words is None else f"{names}的{words[0]}"
        if value:
            return f"把{what}{'设为' if 'set' in does else verb} {value}"
        return f"{verb}{what}"
    what = names if bare or words is None else f"the {words[1]} of {names}"
    joint = "to" if "set" in does else "by"
    return f"{verb} {what} {joint} {value}" if value else f"{verb} {what}"


def _spoken_value(ir: QueryIR) -> str:
    if ir.value is None:
        return ""
    if ir.value.number is None:
        return ir.value.text or ir.value.extreme or ""
    space = " " if ir.value.unit == "K" else ""
    return f"{ir.value.number:g}{space}{ir.value.unit or ''}"


def render(answer: Answer, *, form: Literal["yaml", "json"] = "yaml", max_tokens: int = 800) -> str:
    """The answer for a prompt, at most `max_tokens` long by the estimate of `homing.text.budget`.

    Names come from people: each stands in JSON quotes on one line, so that none can end its field, and the block is
    marked as data. Where not all devices fit, the last ones are left out and counted.
    """
    if max_tokens < 1:
        raise InvalidArgument(f"max_tokens is at least 1; got {max_tokens}")
    shown = max((len(step.candidates) for step in answer.steps), default=0)
    while True:
        steps = [_shown_step(step, shown) for step in answer.steps]
        noted = {"note": FENCE, "steps": steps}
        text = _yaml(steps) if form == "yaml" else json.dumps(noted, ensure_ascii=False, separators=(",", ":"))
        if estimate_tokens(text) <= max_tokens:
            return text
        if shown == 0:
            raise InvalidArgument(f"max_tokens={max_tokens} is too small for an answer without any device")
        shown = shown * 3 // 4


def _shown_step(step: Step, shown: int) -> dict[str, Any]:
    data: dict[str, Any] = {"decision": step.decision, "action": step.ir.action}
    if step.hint:
        data["hint"] = step.hint
        data["say"] = step.question
    data["devices"] = [_shown_candidate(candidate) for candidate in step.candidates[:shown]]
    if len(step.candidates) > shown:
        data["left_out"] = len(step.candidates) - shown
    return data


def _shown_candidate(candidate: Candidate) -> dict[str, Any]:
    device = candidate.device
    data: dict[str, Any] = {"id": device.id, "name": device.name[:MAX_NAME]}
    if device.room:
        data["room"] = device.room[:MAX_NAME]
    if candidate.command:
        data["command"] = candidate.command.id
    if candidate.value is not None:
        data["value"] = candidate.value
    if candidate.change is not None:
        data["change"] = candidate.change
    data["why"] = list(candidate.reasons)
    return data


def _yaml(steps: list[dict[str, Any]]) -> str:
    """YAML whose scalars are JSON, which YAML reads alike: no value can break out of its line."""
    lines = [f"# {FENCE}"]
    for step in steps:
        start = "- "
        for key, value in step.items():
            if key == "devices":
                lines.append(f"{start}devices:" + ("" if value else " []"))
                inline = (", ".join(f"{name}: {_scalar(one)}" for name, one in device.items()) for device in value)
                lines += [f"  - {{{device}}}" for device in inline]
            else:
                lines.append(f"{start}{key}: {_scalar(value)}")
            start = "  "
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    # YAML also ends a line at these three, which JSON may leave as they are.
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")
