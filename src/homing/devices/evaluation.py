"""How well sentences find their devices: measured on homes with sentences and the entities they mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing.devices.answer import Answer, DialogueState
from homing.devices.lexicon.actions import NEGATIVE, POSITIVE
from homing.devices.loading import load_home, read_json
from homing.devices.retriever import DeviceRetriever
from homing.devices.similarity import meaning_of
from homing.embedders.provider import EmbeddingProvider
from homing.errors import InvalidArgument, NotFound

DIRECTIONS = {"TurnOn": "on", "TurnOff": "off", "Set": "set", "Get": "query"}
"""The direction of an intent by a part of its name."""
FOREIGN = ("Timer", "ShoppingList", "List", "CurrentDate", "CurrentTime", "Nevermind", "Respond", "Broadcast")
"""Parts of the names of intents that no device carries out."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A sentence that found other devices than it means."""

    sentence: str
    expected: tuple[str, ...]
    found: tuple[str, ...]
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Shares over the sentences of one home.

    `exact`: the devices are exactly those meant. `wrong`: a device that is not meant would be acted on. `refused`:
    nothing was done. `direction`: of those acted on, on is on and off is off. Those are over the `sentences` that name
    entities; `acted_without_entities` and `acted_on_foreign` count acting among those that name none. `wrong_acts`
    counts the sentences that would move something they do not mean, or without being asked first. `kinds` is the share
    that is exact for each kind of speech.
    """

    name: str
    sentences: int
    exact: float
    wrong: float
    refused: float
    direction: float
    commands_without_entities: int
    acted_without_entities: int
    foreign: int
    acted_on_foreign: int
    wrong_acts: int
    kinds: Mapping[str, float]
    misses: tuple[Miss, ...]


def _sentences(file: Path) -> Iterable[Mapping[str, Any]]:
    found = read_json(file)
    for number, row in enumerate([found] if isinstance(found, Mapping) else found, 1):
        said = row.get("text" if "decision" in row else "utterance") if isinstance(row, Mapping) else None
        if not isinstance(said, str):
            raise InvalidArgument(f"{file}, sentence {number}: a row has `text` and `decision`, or `utterance`")
        yield row


def evaluate(folder: Path | str, *, embedder: EmbeddingProvider | None = None) -> Evaluation:
    """Asks every sentence of `eval.jsonl` (and `tests.jsonl`, for sentences that speak of no device) by the rules.

    The folder holds a home (`devices.jsonl`, `areas.jsonl`) and `eval.jsonl`. Its rows are those of Home Assistant
    (`utterance`, `intent`, `context_area`, `expected_entities`), or ours: `text`, `decision`, `devices` and, where they
    matter, `command`, `value`, `change`, `room`, `speech`; one that `follows` answers the sentence before it.
    `confirm` of what is meant counts as exact.
    """
    folder = Path(folder)
    rows = folder / "eval.jsonl"
    if not rows.is_file():
        raise NotFound(f"{folder} holds no eval.jsonl; pass a folder with a home and its sentences")
    home = load_home(folder)
    retriever = DeviceRetriever(home.devices, home.rooms, embedder=embedder)
    counts: Counter[str] = Counter()
    spoken: Counter[str] = Counter()
    exact: Counter[str] = Counter()
    misses: list[Miss] = []
    state: DialogueState | None = None
    for row in _sentences(rows):
        if "decision" not in row:
            answer = retriever.ask(row["utterance"], room=row.get("context_area"))
            _count(row, answer, counts, misses)
            continue
        if "after" in row:
            state = retriever.ask(row["after"], room=row.get("room")).state
        answer = retriever.ask(
            row["text"], room=row.get("room"), state=state if "after" in row or row.get("follows") else None
        )
        state = answer.state
        right = _is_right(row, answer)
        spoken[row.get("speech", "")] += 1
        exact[row.get("speech", "")] += right
        _count_decided(row, answer, right, counts, misses)
    foreign = list(_foreign(folder / "tests.jsonl"))
    acted = sum(retriever.ask(text).decision == "act" for text in foreign)
    named = max(1, counts["named"])
    return Evaluation(
        name=folder.name,
        sentences=counts["named"],
        exact=counts["exact"] / named,
        wrong=counts["wrong"] / named,
        refused=counts["refused"] / named,
        direction=counts["direction"] / max(1, counts["acted"]),
        commands_without_entities=counts["empty"],
        acted_without_entities=counts["acted on empty"],
        foreign=len(foreign),
        acted_on_foreign=acted,
        wrong_acts=counts["wrong acts"] + acted,
        kinds={kind: exact[kind] / spoken[kind] for kind in sorted(spoken)},
        misses=tuple(misses),
    )


def _is_right(row: Mapping[str, Any], answer: Answer) -> bool:
    """Whether the decision, the devices, the command and the value are those that are meant."""
    meant = row["decision"]
    if meant in ("ask", "refuse"):
        return answer.decision == meant or (meant == "refuse" and answer.decision == "answer")
    found = {device.id for device in answer.devices}
    if meant == "answer":
        return answer.decision == "answer" and (not row["devices"] or found == set(row["devices"]))
    given = [c for step in answer.steps if step.decision in ("act", "confirm") for c in step.candidates]
    return (
        answer.decision in ("act", "confirm")
        and (meant == "act" or answer.decision == "confirm")
        and found == set(row["devices"])
        and ("command" not in row or {c.command.id for c in given if c.command} == {row["command"]})
        and ("value" not in row or all(_same(c.value, row["value"]) for c in given))
        and ("change" not in row or all(_same_change(c.change, row["change"]) for c in given))
    )


def _same(given: object, meant: object) -> bool:
    if isinstance(given, int | float) and isinstance(meant, int | float):
        return abs(given - meant) < 0.5
    return given == meant


def _same_change(given: float | None, meant: float | str) -> bool:
    if given is None:
        return False
    return (given > 0) == (meant == "+") if isinstance(meant, str) else abs(given - meant) < 1e-6


def _acting(answer: Answer) -> set[str]:
    """The devices that would be moved without a question."""
    return {c.device.id for step in answer.steps if step.decision == "act" for c in step.candidates}


def _miss(text: str, expected: Iterable[str], answer: Answer) -> Miss:
    found = tuple(sorted(device.id for device in answer.devices))
    return Miss(text, tuple(sorted(set(expected))), found, answer.hints)


def _count_decided(
    row: Mapping[str, Any], answer: Answer, right: bool, counts: Counter[str], misses: list[Miss]
) -> None:
    acting = _acting(answer)
    wrong = bool(acting - set(row["devices"])) or (bool(acting) and row["decision"] != "act")
    counts["named"] += 1
    counts["exact"] += right
    counts["wrong"] += wrong
    counts["wrong acts"] += wrong
    counts["refused"] += not acting
    if row["decision"] in ("act", "confirm") and answer.decision in ("act", "confirm"):
        counts["acted"] += 1
        counts["direction"] += right
    if not right:
        misses.append(_miss(row["text"], row["devices"], answer))


def _count(row: Mapping[str, Any], answer: Answer, counts: Counter[str], misses: list[Miss]) -> None:
    found = {device.id for device in answer.devices}
    expected = set(row["expected_entities"])
    if not expected:
        # Questions without expected entities are about states, which the data does not list.
        if _direction(row["intent"]) != "query":
            counts["empty"] += 1
            counts["acted on empty"] += bool(found)
            if found:
                misses.append(_miss(row["utterance"], expected, answer))
        return
    counts["named"] += 1
    counts["exact"] += found == expected
    counts["wrong"] += bool(found - expected)
    counts["wrong acts"] += bool(_acting(answer) - expected)
    counts["refused"] += not found
    if found:
        counts["acted"] += 1
        counts["direction"] += _said(answer) == _direction(row["intent"])
    if found != expected:
        misses.append(_miss(row["utterance"], expected, answer))


def _direction(intent: str) -> str:
    return next((direction for part, direction in DIRECTIONS.items() if part in intent), "")


def _said(answer: Answer) -> str:
    """The direction of the commands that would be given."""
    directions = set()
    for candidate in answer.candidates:
        concepts = meaning_of(answer.ir.action).concepts
        if candidate.command is None or "query" in concepts:
            directions.add("query")
        elif candidate.value is not None or candidate.change is not None:
            directions.add("set")
        else:
            given = meaning_of(candidate.command.description).concepts
            directions.add("on" if given & POSITIVE else "off" if given & NEGATIVE else "set")
    return directions.pop() if len(directions) == 1 else "mixed"


def _foreign(file: Path) -> Iterable[str]:
    if not file.is_file():
        return
    for row in read_json(file):
        if any(part in (row.get("intent") or "") for part in FOREIGN):
            yield row["utterance"]
