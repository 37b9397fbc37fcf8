"""Numbers as people say them: 24, 20.5, 二十四, 百分之三十, 一半, twenty point five."""

from __future__ import annotations

import re

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
