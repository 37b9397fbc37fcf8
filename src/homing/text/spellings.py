"""Other ways of writing a word, for engines that match a text as it stands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import product
from math import prod

from homing.text.folding import fold
from homing.text.traditional import SIMPLIFIED, TRADITIONAL

MOST = 16
"""Spellings of one word, at most."""
_TO_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


def spellings(word: str) -> list[str]:
    """The word itself first, then as others write it: simplified or traditional characters, full-width letters.

    数据 is also 數據, and API is also ＡＰＩ. Upper and lower case are left to the engine. At most `MOST`; where there
    would be more, the word and its simplified form stand alone.
    """
    if word.isascii():
        return list(dict.fromkeys([word, word.translate(_TO_FULL_WIDTH)])) if word else []
    plain = fold(word)
    forms = [dict.fromkeys([*plain[at : at + 1], *_traditional().get(one, "")]) for at, one in enumerate(plain)]
    if prod(map(len, forms)) > MOST:
        return list(dict.fromkeys([word, plain]))
    return list(dict.fromkeys([word, *map("".join, product(*forms))]))[:MOST]


@cache
def _traditional() -> Mapping[str, str]:
    found: dict[str, str] = defaultdict(str)
    for traditional, simplified in zip(TRADITIONAL, SIMPLIFIED, strict=True):
        found[simplified] += traditional
    return found
