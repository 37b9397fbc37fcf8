"""Which command of a device does what was asked, and with which value.

A command is chosen by the likeness of words, with a veto for the opposite; 一半 of 16–30 is 23, and 300% is too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from homing.devices.answer import COMMAND_HIT, Candidate
from homing.devices.device import CommandSpec, Device
from homing.devices.lexicon.actions import accepted, canonical, opposed
from homing.devices.lexicon.values import COLORS, MODES, PROPERTY_WORDS
from homing.devices.query import QueryIR, SpokenValue
from homing.devices.similarity import (
    Meaning,
    SimilarityFunc,
    VectorSimilarity,
    command_meaning,
    default_similarity,
    meaning_of,
    wordings,
)
from homing.devices.vocabulary import canonical_type, is_chinese, spoken
from homing.text.tokens import query_terms, tokens

THRESHOLD = 0.5
"""Likeness from which a command is what the action asks for."""

UNKNOWN_VERB = 0.6
"""The same for a verb that no lexicon knows."""

OWN_VERB = 0.8
"""The same where no word is shared, too."""
LEAD = 0.1
"""By how much such a command must be more alike than the next."""

BY_TYPE = {
    "light": "brightness", "climate": "temperature", "media_player": "volume", "fan": "speed", "cover": "position",
    "humidifier": "humidity", "water_heater": "temperature", "valve": "position", "air_purifier": "speed",
}  # fmt: skip
"""What is meant by "up", "down" or a number where the sentence does not say: 调高空调 is its temperature."""
NUMERIC = frozenset({"int", "integer", "float", "number", "double", "percent", "percentage", "level", "range"})
WORDED = frozenset({"enum", "string", "str", "text", "color", "colour", "mode"})
LEVELS = {"low": 1 / 3, "medium": 2 / 3, "high": 1.0}
"""How much of the range a level is, where a command takes numbers."""
STEP = 0.1
"""Share of the range that "a bit brighter" moves."""


@dataclass(frozen=True, slots=True)
class Match:
    """A command that does it, how alike it is, and its value."""

    command: CommandSpec
    likeness: float
    rank: float
    fitted: Fitted


def filter_by_capability(
    candidates: Iterable[Candidate | Device],
    ir: QueryIR,
    *,
    similarity_func: SimilarityFunc | None = None,
    threshold: float = THRESHOLD,
) -> list[Candidate]:
    """The candidates that have a command for the action, each with that command and the reason `command_hit`.

    A command qualifies by `similarity_func(action, text)` on its description, synonyms and values; without one, by the
    bundled model. A command that goes the other way never does, however alike its words are. An empty action asks
    for nothing and filters nothing.
    """
    given = [candidate if isinstance(candidate, Candidate) else Candidate(candidate, 1.0) for candidate in candidates]
    if not ir.action:
        return given
    kept = []
    seen: dict[tuple[int, str], Match | None] = {}
    for candidate in given:
        device = candidate.device
        type_name = canonical_type(device.type) if device.type else ""
        key = (id(device.commands), type_name)
        if key not in seen:
            seen[key] = best_command(device.commands, type_name, ir, similarity_func, threshold)
        match = seen[key]
        if match is not None:
            kept.append(_with_command(candidate, match))
    return kept


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a device of some type is asked for: the action as text and concepts, the property it is about, the value."""

    action: str
    concepts: frozenset[str]
    property: str | None
    value: SpokenValue | None


def best_command(
    commands: Sequence[CommandSpec],
    type_name: str,
    ir: QueryIR,
    similarity_func: SimilarityFunc | None = None,
    threshold: float = THRESHOLD,
) -> Match | None:
    """The command that fits best, or None. Ties go to the one listed first."""
    asked = _asked(ir, type_name)
    similar = similarity_func or default_similarity()
    said = spoken(ir.raw)
    feature = [word for text in meaning_of(ir.action).rest for word in text.split()] if asked.concepts else []
    threshold = threshold if asked.concepts else max(threshold, UNKNOWN_VERB)
    best: Match | None = None
    second = 0.0
    for command in commands:
        does = command_meaning(command)
        if not _possible(asked, command, does):
            continue
        texts = wordings(command)
        if feature and not all(any(_holds(text, word) for text in texts) for word in feature):
            continue
        if not asked.concepts and takes_values(command):
            continue
        if isinstance(similar, VectorSimilarity):
            likeness = similar.best(asked.action, texts)
        else:
            likeness = max(similar(asked.action, text) for text in texts)
        if likeness < threshold:
            continue
        fitted = _fitted(asked, command)
        rank = likeness + _agreement(asked, does, said, fitted)
        if best is None or rank > best.rank:
            second = best.likeness if best is not None else 0.0
            best = Match(command, likeness, rank, fitted)
        else:
            second = max(second, likeness)
    if best is not None and not asked.concepts and not shares_words(ir.action, best.command):
        # What nobody knows must be much like one command, and like no other.
        return best if best.likeness >= OWN_VERB and best.likeness - second >= LEAD else None
    return best


def _asked(ir: QueryIR, type_name: str) -> _Asked:
    meant = meaning_of(ir.action)
    action, concepts, property_name = ir.action, meant.concepts, ir.property or next(iter(meant.properties), None)
    if type_name == "cover" and concepts & {"up", "down"} and property_name is None and ir.value is None:
        # Blinds go up by opening.
        concepts = frozenset({"open" if "up" in concepts else "close"})
        action = canonical(concepts, None, None, is_chinese(ir.action))
    elif property_name is None and concepts & {"set", "up", "down"} and type_name in BY_TYPE:
        property_name = BY_TYPE[type_name]
        action = canonical(concepts, PROPERTY_WORDS[property_name], property_name, is_chinese(ir.action))
    return _Asked(action, concepts, property_name, ir.value)


def _possible(asked: _Asked, command: CommandSpec, does: Meaning) -> bool:
    """What no likeness can outweigh: the opposite direction, another property, a value where none is taken."""
    concepts = asked.concepts
    if opposed(concepts, does.concepts):
        return False
    if "toggle" in does.concepts and "toggle" not in concepts:
        return False
    of_its_own = {"title", "area"}
    if (asked.property in of_its_own or does.properties & of_its_own) and asked.property not in does.properties:
        return False
    moves = concepts & {"set", "up", "down"}
    if moves and asked.property and does.properties and asked.property not in does.properties:
        return False
    if "set" in concepts and asked.value is not None and not takes_values(command):
        return False
    if not concepts or not does.concepts:
        return True
    if concepts & {"up", "down"} and "set" in does.concepts:
        return takes_values(command)
    if "query" in concepts:
        return "query" in does.concepts
    if "set" in concepts:
        return bool(does.concepts & {"set", "up", "down"}) or (takes_values(command) and "query" not in does.concepts)
    return bool(accepted(concepts) & does.concepts)


def _holds(text: str, word: str) -> bool:
    """English words as words, Chinese ones anywhere."""
    form = spoken(text)
    return word in form.split() if word.isascii() else word in form


def shares_words(action: str, command: CommandSpec) -> bool:
    """Whether a command says in words what an unknown verb says: 摇头 is 开始摇头, and not 停止摇头."""
    if opposed(frozenset({"start"}), command_meaning(command).concepts):
        return False
    said = {term for term in query_terms(action) if len(term) > 1}
    return any(said & set(tokens(text)) for text in (command.description, *command.synonyms))


def own_commands(devices: Iterable[Device], text: str, similar: SimilarityFunc | None) -> Device | None:
    """The one device with a command that no lexicon knows and that says the same: 喂猫 is 投喂宠物."""
    similar = similar or default_similarity()
    best: dict[str, float] = {}
    found: dict[str, Device] = {}
    likeness: dict[CommandSpec, float] = {}
    for device in devices:
        for command in device.commands:
            if takes_values(command) or command_meaning(command).concepts or not command.description:
                continue
            if command not in likeness:
                likeness[command] = max(similar(text, wording) for wording in wordings(command))
            if likeness[command] >= max(OWN_VERB, best.get(device.id, 0.0)):
                best[device.id], found[device.id] = likeness[command], device
    top = max(best.values(), default=0.0)
    chosen = [device_id for device_id in best if best[device_id] >= top - 0.02]
    return found[chosen[0]] if len(chosen) == 1 else None


def _fitted(asked: _Asked, command: CommandSpec) -> Fitted:
    concepts = asked.concepts
    if asked.value is not None:
        fitted = fit(asked.value, command) if takes_values(command) else Fitted()
        downwards = fitted.change is not None and "down" in concepts
        return replace(fitted, change=-abs(fitted.change or 0.0)) if downwards else fitted
    if concepts & {"up", "down"} and takes_values(command):
        return Fitted(change=nudge(command, "up" in concepts))
    for option in command.value_list:
        means = meaning_of(f"{option.value}").concepts | meaning_of(option.description).concepts
        if means & concepts and not opposed(concepts, means):
            return Fitted(value=option.value)
    return Fitted()


def _agreement(asked: _Asked, does: Meaning, said: str, fitted: Fitted) -> float:
    """What decides between commands that are all alike enough: the same verb, the property, the words, the value."""
    score = 0.2 if asked.concepts & does.concepts else 0.0
    if asked.property is not None:
        score += 0.3 if asked.property in does.properties else 0.0
    elif does.properties and not asked.concepts & {"set", "up", "down", "query"}:
        score -= 0.2
    mentioned = [word for word in does.rest if word in said]
    score += 0.15 * bool(mentioned) - 0.15 * bool(does.rest and not mentioned)
    if asked.value is not None and fitted.allowed is not None:
        score -= 0.25
    return score


def _with_command(candidate: Candidate, match: Match) -> Candidate:
    return replace(
        candidate,
        reasons=tuple(dict.fromkeys((*candidate.reasons, COMMAND_HIT))),
        score=round(candidate.score * (0.8 + 0.2 * min(1.0, match.likeness)), 4),
        command=match.command,
        value=match.fitted.value,
        change=match.fitted.change,
        explanation=f"{candidate.explanation}; {match.command.id} {match.likeness:.2f}".lstrip("; "),
    )


@dataclass(frozen=True, slots=True)
class Fitted:
    """A value for a command, or how much to change it, or what is allowed instead."""

    value: float | str | bool | None = None
    change: float | None = None
    allowed: str | None = None


def takes_values(command: CommandSpec) -> bool:
    """Whether the command needs to be told a value."""
    kind = (command.type or "").lower()
    return bool(command.value_range or command.value_list or command.unit or kind in NUMERIC or kind in WORDED)


def fit(value: SpokenValue, command: CommandSpec) -> Fitted:
    """The value in the command's own terms; `allowed` where it cannot be given."""
    low, high = _bounds(command)
    if value.text is not None:
        if value.text in LEVELS and not command.value_list and low is not None and high is not None:
            return Fitted(value=round(low + (high - low) * LEVELS[value.text]))
        return _option(value.text, command)
    if value.extreme is not None:
        return _extreme(value.extreme, command, low, high)
    number = value.number
    if number is None:
        return Fitted()
    if value.relative:
        return Fitted(change=number)
    if not _unit_fits(value, command):
        return Fitted(allowed=_allowed(command))
    number = _converted(value, number, command, low, high)
    if command.value_list and command.value_range is None:
        return _option(f"{number:g}", command)
    if (low is not None and number < low) or (high is not None and number > high):
        return Fitted(allowed=_allowed(command))
    return Fitted(value=number)


def nudge(command: CommandSpec, upwards: bool) -> float | None:
    """How far "a bit more" goes: a tenth of the range, at least a step; None where no range is known."""
    low, high = _bounds(command)
    if low is None or high is None:
        return None
    step = (command.value_range.step if command.value_range else None) or 0.0
    size = max(step, round((high - low) * STEP, 6))
    if "°C" in command.unit or "°" in command.unit:
        size = max(step, 1.0)
    return size if upwards else -size


def _bounds(command: CommandSpec) -> tuple[float | None, float | None]:
    bounds = command.value_range
    low, high = (bounds.minimum, bounds.maximum) if bounds else (None, None)
    if "%" in command.unit or (command.type or "").lower() in ("percent", "percentage"):
        low, high = (0.0 if low is None else low), (100.0 if high is None else high)
    return low, high


def _unit_fits(value: SpokenValue, command: CommandSpec) -> bool:
    """Degrees are no percentage. A command without a unit takes either."""
    units = {unit.upper().replace("℃", "°C").replace("℉", "°F") for unit in command.unit}
    if value.unit is None or not units:
        return True
    degrees = {"°", "°C", "°F", "C", "F"}
    if value.unit == "%":
        return "%" in units or not units & (degrees | {"K"})
    return bool(units & (degrees if value.unit in degrees else {"K"}))


def _converted(value: SpokenValue, number: float, command: CommandSpec, low: float | None, high: float | None) -> float:
    units = set(command.unit)
    if value.unit in units:
        return number
    if value.unit == "°F" and units & {"°C", "C", "℃"}:
        return round((number - 32) / 1.8, 1)
    if value.unit == "°C" and units & {"°F", "F", "℉"}:
        return round(number * 1.8 + 32, 1)
    if value.unit == "%" and "%" not in units and low is not None and high is not None and (low, high) != (0, 100):
        return round(low + (high - low) * number / 100, 2) if 0 <= number <= 100 else high + 1
    return number


def _extreme(end: str, command: CommandSpec, low: float | None, high: float | None) -> Fitted:
    bound = high if end == "max" else low
    if bound is None and command.value_list:
        words = ("high", "max", "高", "强", "大") if end == "max" else ("low", "min", "低", "弱", "小")
        for option in command.value_list:
            if any(word in f"{option.value} {option.description}".lower() for word in words):
                return Fitted(value=option.value)
    if bound is None:
        return Fitted(allowed=_allowed(command))
    # Dimmest is not off: the lowest setting of a percentage is its first step.
    if end == "min" and bound == 0 and "%" in command.unit:
        bound = (command.value_range.step if command.value_range else None) or 1.0
    return Fitted(value=bound)


def _option(text: str, command: CommandSpec) -> Fitted:
    """The listed value that the word names, in either language; any word where nothing is listed."""
    if not command.value_list:
        return Fitted(value=text) if command.value_range is None else Fitted(allowed=_allowed(command))
    for option in command.value_list:
        said = {spoken(f"{option.value}"), spoken(option.description)}
        means = {COLORS.get(word) or MODES.get(word) or word for word in said}
        if text in said | means or any(word and text in word.split() for word in means):
            return Fitted(value=option.value)
        described = spoken(option.description)
        if any(word in described for word, meant in {**COLORS, **MODES}.items() if meant == text and len(word) > 1):
            return Fitted(value=option.value)
    return Fitted(allowed=_allowed(command))


def _allowed(command: CommandSpec) -> str:
    unit = f" {'/'.join(command.unit)}" if command.unit else ""
    if command.value_range is not None:
        return f"{command.value_range}{unit}"
    if command.value_list:
        return ", ".join(option.description or f"{option.value}" for option in command.value_list)
    low, high = _bounds(command)
    return f"{low:g}–{high:g}{unit}" if low is not None and high is not None else f"a value{unit}"
