"""How a text is made comparable: width, accents, traditional characters, invisible marks."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

# Letters that have no decomposition and are still written without their stroke when people search.
PLAIN = {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "þ": "th", "ß": "ss", "ẞ": "SS"}
PLAIN |= {"æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ı": "i", "ς": "σ"}
PLAIN |= {"’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-"}

# Joiners, variation selectors, skin tones, the keycap box, soft hyphens: how a character looks, not what it is.
INVISIBLE = {0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x20E3}
INVISIBLE |= {*range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400), *range(0xE0000, 0xE0200)}

_USUAL = (
    r"\x00-\xa7\xa9-\xac\xae\xb0-\xb3\xb5-\xb7\xb9-\xbb\xbf-\xc5\xc7-\xde\xe0-\xe5\xe7-\xfd\xff-\u0131\u0386-\u0482"
    r"\u2010-\u2016\u2018-\u2022\u2030-\u2032\u20ac\u2190-\u222b\u3000-\u3029\u3041-\u3096\u30a1-\u30fe\u4e00-\u9fff\uff01-\uff5e"
)
"""Characters each of which becomes exactly one, whatever usual ones stand beside it."""
_ONE_TO_ONE = re.compile(f"[{_USUAL}]*")
_UNUSUAL = re.compile(f"[{_USUAL}]?[^{_USUAL}]+")
"""Others, and the character before them, which they may change."""


class _Characters(dict[int, str | None]):
    """What each character becomes; grows with the characters that are met (at most the size of Unicode)."""

    def __missing__(self, code: int) -> str | None:
        self[code] = folded = _fold_character(code)
        return folded


def _fold_character(code: int) -> str | None:
    if code in INVISIBLE or 0x300 <= code < 0x370:
        return None
    # Lone surrogates cannot be written to a store; dandas end words.
    if 0xD800 <= code < 0xE000 or code in (0x964, 0x965):
        return " "
    character = chr(code)
    if 0xC0 <= code < 0x590 or 0x1E00 <= code < 0x2000:  # Latin, Greek, Cyrillic: accents are decoration
        return "".join(c for c in unicodedata.normalize("NFD", character) if not unicodedata.combining(c))
    return character


@cache
def _readings() -> Sequence[tuple[str, str]]:
    """Traditional characters and the simplified ones they are read as.

    Made by tools/make_traditional.py from OpenCC's tables (Apache-2.0). One character becomes one character, so offsets
    survive the folding. Where a traditional character has several simplified readings the most common one stands: text
    and query are folded alike.
    """
    traditional, simplified = Path(__file__).with_name("traditional.txt").read_text(encoding="utf-8").split()
    return list(zip(traditional, simplified, strict=True))


@cache
def _characters() -> _Characters:
    table = _Characters((ord(traditional), simplified) for traditional, simplified in _readings())
    table.update({ord(character): plain for character, plain in PLAIN.items()})
    return table


@cache
def _usual() -> npt.NDArray[np.uint16]:
    """What usual characters become, as far as they were met; 0 for others."""
    return np.zeros(1 << 16, "<u2")


def fold(text: str) -> str:
    """The text with one way of writing for what reads the same; upper and lower case are kept.

    Full-width and other compatibility forms become plain ones (NFKC), café becomes cafe, 幫 becomes 帮, joiners and
    skin tones vanish. The result can be encoded as UTF-8 whatever the text was.
    """
    if text.isascii():
        return text
    codes, usual = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2"), _usual()
    folded = usual.take(codes)
    if not folded.all() and _ONE_TO_ONE.fullmatch(text):
        for code in set(codes[folded == 0].tolist()):
            found = ord(unicodedata.normalize("NFKC", chr(code)).translate(_characters()))
            # A few become characters that take two places there.
            usual[code] = found if found < 1 << 16 else 0
        folded = usual.take(codes)
    if not folded.all():
        return unicodedata.normalize("NFKC", text).translate(_characters())
    # All characters at once, at a fifth of what `translate` takes.
    return folded.tobytes().decode("utf-16-le")


class Folded:
    """A folded text that knows where in the original each of its characters came from.

    Folds unusual letters one by one, which costs more than `fold`: for queries, and for the texts that are shown.
    """

    __slots__ = ("_ends", "_starts", "text")

    def __init__(self, original: str) -> None:
        self._starts: Sequence[int]
        self._ends: Sequence[int]
        if _ONE_TO_ONE.fullmatch(original):
            self.text = fold(original)
            self._starts, self._ends = range(len(original)), range(1, len(original) + 1)
        else:
            self._fold_pieces(original)

    def _fold_pieces(self, original: str) -> None:
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        start = 0

        def usual(end: int) -> None:
            pieces.append(fold(original[start:end]))
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))

        for found in _UNUSUAL.finditer(original):
            usual(found.start())
            start = found.start()
            for end in range(start + 1, found.end() + 1):
                if end < found.end() and _continues(original[end]):
                    continue
                piece = fold(original[start:end])
                pieces.append(piece)
                starts += [start] * len(piece)
                ends += [end] * len(piece)
                start = end
        usual(len(original))
        self.text = "".join(pieces)
        self._starts, self._ends = starts, ends

    def place(self, first: int, last: int) -> tuple[int, int]:
        """Where in the original `text[first:last]`, which must not be empty, begins and ends."""
        return self._starts[first], self._ends[last - 1]


def _continues(character: str) -> bool:
    """Whether the character belongs to the one before it: accents, voicing marks, hangul vowels, skin tones."""
    return not character.isascii() and (
        unicodedata.combining(character) != 0
        or character in "ﾞﾟ"
        or "\u1160" <= character <= "\u11ff"
        or ord(character) in INVISIBLE
    )


MAX_SPELLINGS = 16
"""Of one word."""
_TO_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


def spellings(word: str) -> list[str]:
    """The word itself first, then as others write it: simplified or traditional characters, full-width letters.

    数据 is also 數據, and API is also ＡＰＩ. Upper and lower case are left to the engine. Where there would be more
    than `MAX_SPELLINGS`, the word and its simplified form stand alone.
    """
    if word.isascii():
        return list(dict.fromkeys([word, word.translate(_TO_FULL_WIDTH)])) if word else []
    plain = fold(word)
    forms = [dict.fromkeys([*plain[at : at + 1], *_traditional().get(one, "")]) for at, one in enumerate(plain)]
    if prod(map(len, forms)) > MAX_SPELLINGS:
        return list(dict.fromkeys([word, plain]))
    return list(dict.fromkeys([word, *map("".join, product(*forms))]))[:MAX_SPELLINGS]


@cache
def _traditional() -> Mapping[str, str]:
    found: dict[str, str] = defaultdict(str)
    for traditional, simplified in _readings():
        found[simplified] += traditional
    return found
