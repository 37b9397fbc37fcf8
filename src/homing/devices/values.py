"""What a spoken value is to one command: 一半 of 16–30 is 23, and 300% is too much."""

from __future__ import annotations

from dataclasses import dataclass

from homing.devices.device import CommandSpec
from homing.devices.lexicon.properties import COLORS, MODES
from homing.devices.query import SpokenValue
from homing.devices.spoken import spoken

NUMERIC = frozenset({"int", "integer", "float", "number", "double", "percent", "percentage", "level", "range"})
WORDED = frozenset({"enum", "string", "str", "text", "color", "colour", "mode"})
STEP = 0.1
"""Share of the range that "a bit brighter" moves."""


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
    if value.text is not None:
        return _option(value.text, command)
    low, high = _bounds(command)
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
