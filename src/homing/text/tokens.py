"""Words as the keyword index knows them: one bilingual tokenizer for writing and for asking.

Every store writes `tokens(text)` and asks `query_terms(query)`; nothing else decides what a word is.

Latin words and identifiers stand whole, without their joints, and split: `file_read`, `fileRead` and `file-read` are
all `fileread file read`. `C++`, `C#`, `.NET`, `3.14` and `GPT-4o` (`gpt4o`) are words. Chinese (and kana, hangul) is
written as single characters and pairs of neighbours. An emoji is a word.

A token is never empty and holds no white space and no ASCII other than `a-z 0-9 + # .`; so tokens joined by spaces are
kept apart by any tokenizer that splits at white space. Quotes, operators and control characters never reach a token,
whatever the text was, so a quoted token cannot change the meaning of a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import add

from homing.text.folding import Folded, fold
from homing.text.stopwords import CHINESE, COMMON, ENGLISH

MAX_QUERY = 2_000
"""Characters of a query that are read; a longer one is asked by its beginning."""

MAX_TERMS = 64
"""Terms that are asked at most."""

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
# What stands between most pieces is stepped over at once, and a word that a space or the like ends is one without
# further looks: half of the time. No more than a few at once, or a page of spaces would be gone over for each of them.
_PIECE = re.compile(
    rf"[\0- !-&(-+/:-@\[-^`{{-~]{{0,4}}+("
    rf"[A-Za-z]++(?=[ ,;:)\n])"
    rf"|[{CJK}]+"
    rf"|[A-Za-z]\#(?![A-Za-z0-9])"
    rf"|(?:[^\W\u3005-\U0010ffff]+|[.'-](?=\w)|(?<=\d),(?=\d\d\d(?!\d))|[{MARKED}]+)++(?:\+\+)?"
    rf"|[^\W\0-\u3004]+"  # Yi, hieroglyphs …: like Chinese, by characters and pairs
    rf"|[\U0001f1e6-\U0001f1ff]{{2}}"
    rf"|[{EMOJI}])"
)
# A full stop between digits belongs to the number: 3.14, v2.0.
_JOINT = re.compile(r"(?<!\d)\.|\.(?!\d)|[_'-]+")
_HUMP = re.compile(
    r"[A-Z]+(?=[A-Z][a-z])|[a-z]?[A-Z]?[a-z]{2,}|[A-Z]{2,}"
    r"|[A-Za-z]?(?>\d+(?:\.\d+)*)[A-Za-z]?(?![A-Za-z])|[A-Za-z]|\d+(?:\.\d+)*"
)
_DIGITS = re.compile(r"[\d.]+")
FIRST_CJK = "\u3005"

_known: dict[str, tuple[str, ...]] = {}
_MAX_KNOWN = 50_000


def cut(folded: str) -> list[str]:
    """The pieces of a folded text in reading order: runs of Chinese, words with their joints, emoji."""
    return _PIECE.findall(folded)


def cut_with_offsets(folded: str) -> Iterator[tuple[int, str]]:
    """The same pieces, each with where it starts."""
    return ((found.start(1), found[1]) for found in _PIECE.finditer(folded))


def is_run(piece: str) -> bool:
    """Whether the piece is two or more characters of a script that is written without spaces."""
    return piece >= FIRST_CJK and len(piece) > 1


def is_character(piece: str) -> bool:
    """Whether the piece is one character of such a script, standing alone."""
    return piece >= FIRST_CJK and len(piece) == 1


def word_tokens(piece: str) -> tuple[str, ...]:
    """The tokens of a piece that is not a run: the word as a whole, without its joints, then its parts if it has any.

    `file_read`, `fileRead` and `file-read` all give `fileread file read`; `C++`, `C#` and `.NET` keep their signs.
    """
    known = _known.get(piece)
    if known is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[piece] = known = split_word(piece)
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


def split_word(piece: str) -> tuple[str, ...]:
    """As `word_tokens`, worked out anew."""
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


def tokens(text: str) -> list[str]:
    """What is written into an index: in reading order, repeated as often as the text repeats it. Takes any string."""
    found: list[str] = []
    for piece in cut(fold(text)):
        found += characters_and_pairs(piece) if is_run(piece) else word_tokens(piece)
    return found


def query_terms(query: str) -> list[str]:
    """What is asked: each term once, in order, without stop words, at most `MAX_TERMS` from `MAX_QUERY` characters.

    A run of Chinese is asked by its pairs of characters and by those single ideographs that are not common; a
    character that stands alone is always asked. A query of nothing but stop words is asked as it stands.
    """
    return list(_terms(query[:MAX_QUERY]))


def matched_terms(query: str, text: str) -> list[str]:
    """Which words of the query the text contains; see `CutText.matched`."""
    return CutText(text).matched(query)


def spans(query: str, text: str) -> list[Span]:
    """The places in the text that the query asks for; see `CutText.spans`."""
    return CutText(text).spans(query)


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: `text[start:end]`."""

    start: int
    end: int


def merged(places: Iterable[tuple[int, int]]) -> list[Span]:
    """Places in the order of their beginnings, those that overlap as one."""
    found: list[Span] = []
    for begin, end in places:
        if found and begin < found[-1].end:
            found[-1] = Span(found[-1].start, max(end, found[-1].end))
        else:
            found.append(Span(begin, end))
    return found


class CutText:
    """A text that is cut into words once, however often it is compared with a query."""

    def __init__(self, text: str) -> None:
        self._folded = Folded(text)

    def matched(self, query: str) -> list[str]:
        """Which words of the query the text contains, in the query's order and spelling, each once.

        Chinese is reported in the longest stretches that the text holds: 提交代码 rather than 提交, 交代, 代码. What
        was not asked (stop words, where there are others) is not reported. Reads as much of the query as `query_terms`.
        """
        query, written = query[:MAX_QUERY], self._folded.text
        asked = _cut_query(query)
        matched: dict[str, None] = {}
        for start, piece, parts in asked.pieces:
            if not parts:
                stretches = [(start + first, start + last) for first, last in _stretches(piece, written, asked.terms)]
            elif parts[0] in self._tokens or (is_character(piece) and piece in written):
                stretches = [(start, start + len(piece))]
            else:
                matched.update(dict.fromkeys(part for part in parts[1:] if part in asked.terms & self._tokens))
                stretches = []
            places = (asked.folded.place(first, last) for first, last in stretches)
            matched.update(dict.fromkeys(query[begin:end].strip() for begin, end in places))
        return list(matched)

    def spans(self, query: str) -> list[Span]:
        """The places in the text that the query asks for, in order and apart from each other.

        Offsets count characters of the text as it is, full-width, traditional and accented forms included. Chinese
        pairs that overlap become one place.
        """
        asked = _cut_query(query[:MAX_QUERY])
        places = sorted([*self._places_of_characters(asked), *self._places_of_words(asked)])
        return merged(self._folded.place(first, last) for first, last in places)

    @cached_property
    def _pieces(self) -> list[str]:
        return cut(self._folded.text)

    @cached_property
    def _words(self) -> dict[str, tuple[str, ...]]:
        """The pieces that are no runs, each with its tokens."""
        # Most words were met before; a text has hundreds.
        known = _known.get
        return {one: known(one) or word_tokens(one) for one in set(self._pieces) if one < FIRST_CJK or len(one) == 1}

    @cached_property
    def _tokens(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(self._words.values()))

    def _places_of_characters(self, asked: _Asked) -> Iterator[tuple[int, int]]:
        written = self._folded.text
        for term in asked.characters:
            at = written.find(term)
            while at >= 0:
                yield at, at + len(term)
                at = written.find(term, at + 1)

    def _places_of_words(self, asked: _Asked) -> Iterator[tuple[int, int]]:
        # A query of nothing but Chinese asks for no words, and most words are such that nobody asked for.
        wanted = asked.words and {piece for piece, made in self._words.items() if not asked.words.isdisjoint(made)}
        if wanted:
            written, at = self._folded.text, 0
            for piece in self._pieces:
                at = written.index(piece, at)
                if piece in wanted:
                    yield at, at + len(piece)
                at += len(piece)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a query asks for, and its pieces: the same for every text that it is compared with.

    `characters` are the terms of scripts that are written without spaces, `words` are the others. Pieces have their
    places and tokens, runs no tokens; words that nobody asks for are left out.
    """

    terms: frozenset[str]
    characters: tuple[str, ...]
    words: frozenset[str]
    folded: Folded
    pieces: tuple[tuple[int, str, tuple[str, ...]], ...]


@lru_cache(maxsize=64)
def _cut_query(query: str) -> _Asked:
    folded, terms = Folded(query), frozenset(_terms(query))
    words = frozenset(term for term in terms if term < FIRST_CJK)
    cut_apart = ((at, one, () if is_run(one) else word_tokens(one)) for at, one in cut_with_offsets(folded.text))
    pieces = tuple(one for one in cut_apart if is_run(one[1]) or not terms.isdisjoint(one[2]))
    return _Asked(terms, tuple(terms - words), words, folded, pieces)


def _stretches(run: str, written: str, asked: frozenset[str]) -> list[tuple[int, int]]:
    """The longest stretches of a run that stand in `written` and hold something that was asked."""
    found: list[tuple[int, int]] = []
    end = 0
    for start in range(len(run)):
        longer = max(end, start)
        while longer < len(run) and run[start : longer + 1] in written:
            longer += 1
        if longer > end and _holds(run[start:longer], asked):
            found.append((start, longer))
            end = longer
    return found


def _holds(stretch: str, asked: frozenset[str]) -> bool:
    return not asked.isdisjoint(stretch) or not asked.isdisjoint(map(add, stretch, stretch[1:]))


@lru_cache(maxsize=64)
def _terms(query: str) -> tuple[str, ...]:
    terms: dict[str, None] = {}
    for piece in cut(fold(query)):
        terms.update(dict.fromkeys(_asked_of_run(piece) if is_run(piece) else word_tokens(piece)))
    telling = [term for term in terms if not is_stop_word(term)]
    return tuple((telling or list(terms))[:MAX_TERMS])


def _asked_of_run(run: str) -> Iterator[str]:
    for first, second in zip(run, [*run[1:], ""], strict=True):
        if second:
            yield first + second
        if first >= "\u3400" and first not in COMMON and not "\uac00" <= first <= "\ud7fb":  # an ideograph
            yield first


_STOP = CHINESE | {stem(word) for word in ENGLISH}


def is_stop_word(term: str) -> bool:
    """Whether a term says so little that it is asked only where nothing else is."""
    return term in _STOP or (len(term) == 2 and term[0] in CHINESE and term[1] in CHINESE)


def characters_and_pairs(run: str) -> list[str]:
    """The tokens of a run."""
    both = [""] * (2 * len(run) - 1)
    both[::2] = run
    both[1::2] = map(add, run, run[1:])
    return both
