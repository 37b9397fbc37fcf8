"""What can be read or set on a device, the words that are values, and numbers as people say them."""

from __future__ import annotations

import re

from homing.devices.lexicon.words import TABLES, by_word, words

PROPERTIES: dict[str, str] = {}
"""Property by its comparable form."""
PROPERTY_TYPES: dict[str, frozenset[str]] = {}
"""The types of device that have a property; empty means any."""
PROPERTY_WORDS: dict[str, tuple[str, str]] = {}
"""How a property is written in Chinese and English."""

for _name, _types, *_languages in TABLES["properties"]:
    PROPERTIES.update(dict.fromkeys(words(*_languages), _name))
    PROPERTY_TYPES[_name] = frozenset(_types.split())
    PROPERTY_WORDS[_name] = (words(_languages[0], "")[0], words("", _languages[1])[0])

PERCENT_PROPERTY = {"light": "brightness", "cover": "position", "media_player": "volume", "fan": "speed"}
"""What "50%" means on a device where the sentence does not say; elsewhere whatever the device takes in percent."""

COLORS, EXTREMES, UNITS = by_word("colors"), by_word("extremes"), by_word("units")
_MODES = by_word("modes")
MODES = _MODES | {f"{said}档": mode for said, mode in _MODES.items() if len(said) == 2 and not said.isascii()}

_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "幺": 1}
_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10000}
_CHINESE = "".join(_DIGITS) + "".join(_SCALES)
_UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_UNITS += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: value for value, word in enumerate(_UNITS)}
_WORDS |= {word: 10 * value for value, word in enumerate(_TENS, 2)}
_ENGLISH = "|".join(sorted([*_WORDS, "hundred", "thousand"], key=len, reverse=True))

NUMBER = re.compile(
    rf"-?\d+(?:\.\d+)?|零下(?:\d+|[{_CHINESE}]+)|[{_CHINESE}]+(?:点[{''.join(_DIGITS)}]+)?"
    rf"|\b(?:minus )?(?:(?:{_ENGLISH})\b(?: and | )?)+(?:point (?:(?:{'|'.join(_UNITS[:10])})\b ?)+)?"
)
"""A number at the start of what follows."""


_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "tenth": 10}
FRACTION = re.compile(
    rf"(?P<of>[{_CHINESE}]+|\d+)分之(?P<parts>[{_CHINESE}]+|\d+)"
    rf"|(?P<half>一半|半开|半关|half ?way|half(?! an? )|a half)(?![a-z])"
    rf"|(?P<count>an?|one|two|three|four|1|2|3) (?P<part>{'|'.join(_PARTS)})s?(?![a-z])"
    r"|(?P<bare>third|quarter)(?![a-z])"
)
"""A part of the whole at the start of what follows; 百分之 is a percentage."""


def share_of(found: re.Match[str]) -> float | None:
    """The percentage that a match of FRACTION says."""
    if found["half"]:
        return 50.0
    if found["of"]:
        whole, parts = number_of(found["of"]), number_of(found["parts"])
        return None if not whole or parts is None or parts > whole else round(100 * parts / whole, 2)
    if found["bare"]:
        return round(100 / _PARTS[found["bare"]], 2)
    count = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4}.get(found["count"]) or int(found["count"])
    return round(100 * count / _PARTS[found["part"]], 2)


def number_of(text: str) -> float | None:
    """The number a match of NUMBER says; None where the characters make none."""
    text = text.strip()
    if re.fullmatch(r"-?\d+(?:\.\d+)?", text):
        return float(text)
    if text.startswith("零下"):
        below = number_of(text[2:])
        return None if below is None else -below
    return _chinese(text) if text[0] in _CHINESE else _english(text)


def _chinese(text: str) -> float | None:
    whole, _, fraction = text.partition("点")
    if not any(character in _SCALES for character in whole):
        digits = "".join(str(_DIGITS[character]) for character in whole)
        total = float(digits)
    else:
        total, digit = 0.0, None
        for character in whole:
            if character in _DIGITS:
                digit = _DIGITS[character]
            elif character == "万":
                total, digit = (total + (digit or 0)) * 10000, None
            else:
                total, digit = total + (1 if digit is None else digit) * _SCALES[character], None
        # 一百五 is a hundred and fifty, 一百零五 a hundred and five.
        if digit is not None:
            short = whole[-2:-1] in ("百", "千")
            total += digit * (_SCALES[whole[-2]] // 10 if short else 1)
    if fraction:
        total += float("0." + "".join(str(_DIGITS[character]) for character in fraction))
    return total


def _english(text: str) -> float | None:
    sign = -1 if text.startswith("minus ") else 1
    whole, _, fraction = text.removeprefix("minus ").partition("point")
    total = 0
    for word in whole.split():
        if word == "hundred":
            total = (total or 1) * 100
        elif word == "thousand":
            total = (total or 1) * 1000
        elif word != "and":
            total += _WORDS[word]
    decimals = "".join(str(_WORDS[word]) for word in fraction.split())
    return sign * (total + (float("0." + decimals) if decimals else 0.0))
