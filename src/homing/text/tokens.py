"""Words as the keyword index knows them: one bilingual tokenizer for writing and for asking.

Every store writes `tokens(text)` and asks `query_terms(query)`; nothing else decides what a word is.

Latin words and identifiers stand whole, without their joints, and split: `file_read`, `fileRead` and `file-read` are
all `fileread file read`. `C++`, `C#`, `.NET`, `3.14` and `GPT-4o` (`gpt4o`) are words. Chinese (and kana, hangul) is
written as single characters and pairs of neighbours. An emoji is a word.

A token is never empty and holds no white space and no ASCII other than `a-z 0-9 + # .`; so tokens joined by spaces are
kept apart by any tokenizer that splits at white space, and in SQLite by `FTS5_TOKENIZE`. Quotes, operators and control
characters never reach a token, whatever the text was, so a quoted token cannot change the meaning of a query.
"""

from __future__ import annotations

import re
from operator import add

from homing.text.folding import fold
from homing.text.stopwords import CHINESE, ENGLISH

FTS5_TOKENIZE = "ascii tokenchars '+#.'"
"""The `tokenize` option of an FTS5 table that keeps these tokens as they are.

FTS5's `ascii` takes every character beyond ASCII for a part of a word, so no token depends on the version of Unicode
that SQLite knows (its `unicode61` splits at emoji and new ideographs).
"""

MAX_TOKEN = 64
"""Characters of the longest token; what is longer (encoded data, mostly) is cut there, on both sides alike."""

MAX_QUERY = 2_000
"""Characters of a query that are read; a longer one is asked by its beginning."""

MAX_TERMS = 64
"""Terms that are asked at most."""

# Ideographs with their extensions and iteration marks, bopomofo, kana, hangul: written without spaces, or with endings
# that only pairs of characters see through.
CJK = (
    "\u3005-\u3007\u3040-\u309f\u30a1-\u30fa\u30fc-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7fb\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U000323af"
)
EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f0ff\U0001f200-\U0001faff"
# Marks of the Indic and South-East Asian scripts are vowels: without them a word would fall apart.
LETTER = rf"[^\W_{CJK}]|[\u0900-\u0963\u0966-\u109f\u1780-\u17d3]"

_TOKEN = re.compile(
    rf"[{CJK}]+"
    rf"|[A-Za-z]\#(?![A-Za-z0-9])"
    rf"|(?:{LETTER})+(?:(?:[.'-]|_+|(?<=\d),(?=\d\d\d(?!\d)))(?:{LETTER})+)*(?:\+\+)?"
    rf"|(?<!\w)\.[Nn][Ee][Tt]\b"
    rf"|[\U0001f1e6-\U0001f1ff]{{2}}"
    rf"|[{EMOJI}]"
)
_FIRST_CJK = "\u3005"
# A full stop between digits belongs to the number: 3.14, v2.0.
_JOINT = re.compile(r"(?<!\d)\.|\.(?!\d)|[_'-]+")
_HUMP = re.compile(
    r"[A-Z]+(?=[A-Z][a-z])|[a-z]?[A-Z]?[a-z]{2,}|[A-Z]{2,}"
    r"|[A-Za-z]?(?>\d+(?:\.\d+)*)[A-Za-z]?(?![A-Za-z])|[A-Za-z]|\d+(?:\.\d+)*"
)
_DIGITS = re.compile(r"[\d.]+")

_words: dict[str, tuple[str, ...]] = {}
_MAX_WORDS = 50_000


def tokens(text: str) -> list[str]:
    """What is written into an index: in reading order, repeated as often as the text repeats it. Takes any string."""
    found: list[str] = []
    for piece in _TOKEN.findall(fold(text)):
        if piece >= _FIRST_CJK and len(piece) > 1:
            found += _characters_and_pairs(piece)
        else:
            found += _words.get(piece) or _word(piece)
    return found


def query_terms(query: str) -> list[str]:
    """What is asked: each term once, in order, without stop words, at most `MAX_TERMS` from `MAX_QUERY` characters.

    A run of Chinese is asked by its pairs of characters; single ones are too frequent to tell texts apart, and are
    asked only where they stand alone. A query of nothing but stop words is asked as it stands.
    """
    terms: dict[str, None] = {}
    for piece in _TOKEN.findall(fold(query[:MAX_QUERY])):
        if piece >= _FIRST_CJK and len(piece) > 1:
            terms.update(dict.fromkeys(map(add, piece, piece[1:])))
        else:
            terms.update(dict.fromkeys(_word(piece)))
    telling = [term for term in terms if term not in _STOP]
    return (telling or list(terms))[:MAX_TERMS]


def _characters_and_pairs(run: str) -> list[str]:
    both = [""] * (2 * len(run) - 1)
    both[::2] = run
    both[1::2] = map(add, run, run[1:])
    return both


def _word(word: str) -> tuple[str, ...]:
    if len(_words) > _MAX_WORDS:
        _words.clear()
    _words[word] = parts = _word_parts(word)
    return parts


def _word_parts(word: str) -> tuple[str, ...]:
    """The word as a whole, then its parts if it has any."""
    if word[0] == ".":
        return word.lower(), word[1:].lower()
    if word[-1] in "+#":
        base = word.rstrip("+#").lower()
        return (word.lower(), stem(base)) if len(base) > 1 else (word.lower(),)
    pieces = _pieces(word)
    whole = "".join(pieces).lower()
    if len(pieces) == 1:
        return (stem(whole)[:MAX_TOKEN],)
    # 3-5 is two numbers and not 35; 2024-01-15 and 555-0199 may be written together.
    joined = len(whole) <= MAX_TOKEN and (len(whole) > 5 or not whole.isdigit())
    parts = [stem(piece.lower())[:MAX_TOKEN] for piece in pieces if len(piece) > 1 or piece.isdigit()]
    return (stem(whole), *parts) if joined else tuple(parts)


def _pieces(word: str) -> list[str]:
    word = word.replace(",", "")
    if "'" in word:  # user's is user, don't is one word
        word = word.removesuffix("'s").removesuffix("'S").replace("'", "")
    pieces: list[str] = []
    for part in _JOINT.split(word):
        # Three numbers in one word are a hash or a serial number, whose pieces mean nothing.
        humps = part.isascii() and len(_DIGITS.findall(part)) < 3
        pieces += _HUMP.findall(part) if humps else [part]
    return pieces


def stem(word: str) -> str:
    """An English plural as its singular; everything else as it is. Expects lower case."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "suij" or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


_STOP = CHINESE | {stem(word) for word in ENGLISH}
