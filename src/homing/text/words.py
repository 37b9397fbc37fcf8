"""Where a text is cut: runs of Chinese, Latin words with their parts, emoji."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_TOKEN = 64
"""Characters of the longest token; what is longer (encoded data, mostly) is cut there, in texts and queries alike."""

# Ideographs with their extensions and iteration marks, bopomofo, kana, hangul: written without spaces, or with endings
# that only pairs of characters see through.
CJK = (
    "\u3005-\u3007\u3040-\u309f\u30a1-\u30fa\u30fc-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7fb\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U000323af"
)
# Vowels of the Indic and South-East Asian scripts are marks, which `\w` leaves out: words would fall apart.
MARKED = "\u0900-\u0963\u0966-\u109f\u1780-\u17d3"
EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f0ff\U0001f200-\U0001faff"

# A joint (full stop, hyphen …) may also lead or trail a word here; `_parts` drops it. That costs less than naming the
# letters twice: building a set of characters is most of this module's import time.
_PIECE = re.compile(
    rf"[{CJK}]+"
    rf"|[A-Za-z]\#(?![A-Za-z0-9])"
    rf"|(?:[^\W\u3005-\U0010ffff]+|[.'-](?=\w)|(?<=\d),(?=\d\d\d(?!\d))|[{MARKED}]+)++(?:\+\+)?"
    rf"|[^\W\0-\u3004]+"  # Yi, hieroglyphs …: like Chinese, by characters and pairs
    rf"|[\U0001f1e6-\U0001f1ff]{{2}}"
    rf"|[{EMOJI}]"
)
# A full stop between digits belongs to the number: 3.14, v2.0.
_JOINT = re.compile(r"(?<!\d)\.|\.(?!\d)|[_'-]+")
_HUMP = re.compile(
    r"[A-Z]+(?=[A-Z][a-z])|[a-z]?[A-Z]?[a-z]{2,}|[A-Z]{2,}"
    r"|[A-Za-z]?(?>\d+(?:\.\d+)*)[A-Za-z]?(?![A-Za-z])|[A-Za-z]|\d+(?:\.\d+)*"
)
_DIGITS = re.compile(r"[\d.]+")
_FIRST_CJK = "\u3005"

_known: dict[str, tuple[str, ...]] = {}
_MAX_KNOWN = 50_000


def cut(folded: str) -> list[str]:
    """The pieces of a folded text in reading order: runs of Chinese, words with their joints, emoji."""
    return _PIECE.findall(folded)


def cut_with_offsets(folded: str) -> Iterator[tuple[int, str]]:
    """The same pieces, each with where it starts."""
    return ((found.start(), found[0]) for found in _PIECE.finditer(folded))


def is_run(piece: str) -> bool:
    """Whether the piece is two or more characters of a script that is written without spaces."""
    return piece >= _FIRST_CJK and len(piece) > 1


def is_character(piece: str) -> bool:
    """Whether the piece is one character of such a script, standing alone."""
    return piece >= _FIRST_CJK and len(piece) == 1


def word_tokens(piece: str) -> tuple[str, ...]:
    """The tokens of a piece that is not a run: the word as a whole, without its joints, then its parts if it has any.

    `file_read`, `fileRead` and `file-read` all give `fileread file read`; `C++`, `C#` and `.NET` keep their signs.
    """
    known = _known.get(piece)
    if known is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[piece] = known = _tokens(piece)
    return known


def stem(word: str) -> str:
    """An English plural as its singular, everything else as it is. Expects lower case."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "suij" or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


def _tokens(piece: str) -> tuple[str, ...]:
    lower = piece.lower()
    if lower == ".net":
        return ".net", "net"
    if lower[-1] in "+#":
        name = lower.strip("._'-+#")
        sign = lower[len(lower.rstrip("+#")) :]
        return (name + sign, stem(name)) if len(name) > 1 else (name + sign,)
    parts = _parts(piece)
    whole = "".join(parts).lower()
    if len(parts) < 2:
        return (stem(whole)[:MAX_TOKEN],) if whole else ()
    # 3-5 is two numbers and not 35; 2024-01-15 and 555-0199 may be written together.
    joined = len(whole) <= MAX_TOKEN and (len(whole) > 5 or not whole.isdigit())
    split = [stem(part.lower())[:MAX_TOKEN] for part in parts if len(part) > 1 or part.isdigit()]
    return (stem(whole), *split) if joined else tuple(split)


def _parts(word: str) -> list[str]:
    word = word.strip("._'-").replace(",", "")
    if "'" in word:  # user's is user, don't is one word
        word = word.removesuffix("'s").removesuffix("'S").replace("'", "")
    parts: list[str] = []
    for part in _JOINT.split(word):
        # Three numbers in one word are a hash or a serial number, whose pieces mean nothing.
        humps = part.isascii() and len(_DIGITS.findall(part)) < 3
        parts += _HUMP.findall(part) if humps else [part]
    return parts
