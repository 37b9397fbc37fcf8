"""What `ask` gives back: for each command of a sentence its devices, or the question to put to the speaker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from homing.devices.candidate import Candidate
from homing.devices.device import Device
from homing.devices.query import QueryIR
from homing.records import Mode

Decision = Literal["act", "ask", "refuse"]
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
]


@dataclass(frozen=True, slots=True)
class DialogueState:
    """What was spoken of: passed in by the caller, passed back out with the answer, kept nowhere else.

    `last` are the ids of the devices last mentioned, `pending` the command that a question was asked about.
    """

    last: tuple[str, ...] = ()
    type_hint: str | None = None
    type_word: str | None = None
    pending: QueryIR | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One command: `act` on all of `candidates`, `ask` the `question` about them, or `refuse` and say why."""

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
        """The devices to act on; none where every step asks or refuses."""
        found = {c.device.id: c.device for step in self.steps if step.decision == "act" for c in step.candidates}
        return tuple(found.values())

    @property
    def decision(self) -> Decision:
        """`act` only where every step acts."""
        decisions = {step.decision for step in self.steps}
        return "act" if decisions == {"act"} else "ask" if "ask" in decisions else "refuse"

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
