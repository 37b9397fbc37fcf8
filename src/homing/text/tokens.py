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

from collections.abc import Iterator
from functools import lru_cache
from operator import add

from homing.text.folding import Folded, fold
from homing.text.stopwords import CHINESE, COMMON, ENGLISH
from homing.text.words import cut, cut_with_offsets, is_character, is_run, stem, word_tokens

FTS5_TOKENIZE = "ascii tokenchars '+#.'"
"""The `tokenize` option of an FTS5 table that keeps these tokens as they are.

FTS5's `ascii` takes every character beyond ASCII for a part of a word, so no token depends on the version of Unicode
that SQLite knows (its `unicode61` splits at emoji and at new ideographs).
"""

MAX_QUERY = 2_000
"""Characters of a query that are read; a longer one is asked by its beginning."""

MAX_TERMS = 64
"""Terms that are asked at most."""

_STOP = CHINESE | {stem(word) for word in ENGLISH}


def tokens(text: str) -> list[str]:
    """What is written into an index: in reading order, repeated as often as the text repeats it. Takes any string."""
    found: list[str] = []
    for piece in cut(fold(text)):
        found += _characters_and_pairs(piece) if is_run(piece) else word_tokens(piece)
    return found


def query_terms(query: str) -> list[str]:
    """What is asked: each term once, in order, without stop words, at most `MAX_TERMS` from `MAX_QUERY` characters.

    A run of Chinese is asked by its pairs of characters and by those single ideographs that are not common; a
    character that stands alone is always asked. A query of nothing but stop words is asked as it stands.
    """
    return list(_terms(query[:MAX_QUERY]))


def matched_terms(query: str, text: str) -> list[str]:
    """Which words of the query the text contains, in the query's order and spelling, each once.

    Chinese is reported in the longest stretches that the text holds: 提交代码 rather than 提交, 交代, 代码. What was
    not asked (stop words, where there are others) is not reported. Reads as much of the query as `query_terms`.
    """
    query = query[:MAX_QUERY]
    asked = frozenset(_terms(query))
    written = fold(text)
    words = {word for piece in cut(written) if not is_run(piece) for word in word_tokens(piece)}
    folded = Folded(query)
    matched: dict[str, None] = {}
    for start, piece in cut_with_offsets(folded.text):
        if is_run(piece):
            stretches = [(start + first, start + last) for first, last in _stretches(piece, written, asked)]
        elif asked.isdisjoint(parts := word_tokens(piece)):
            stretches = []
        elif parts[0] in words or (is_character(piece) and piece in written):
            stretches = [(start, start + len(piece))]
        else:
            matched.update(dict.fromkeys(part for part in parts[1:] if part in asked and part in words))
            stretches = []
        places = (folded.place(first, last) for first, last in stretches)
        matched.update(dict.fromkeys(query[begin:end].strip() for begin, end in places))
    return list(matched)


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
    telling = [term for term in terms if not _says_nothing(term)]
    return tuple((telling or list(terms))[:MAX_TERMS])


def _asked_of_run(run: str) -> Iterator[str]:
    for first, second in zip(run, [*run[1:], ""], strict=True):
        if second:
            yield first + second
        if first >= "\u3400" and first not in COMMON and not "\uac00" <= first <= "\ud7fb":  # an ideograph
            yield first


def _says_nothing(term: str) -> bool:
    return term in _STOP or (len(term) == 2 and term[0] in CHINESE and term[1] in CHINESE)


def _characters_and_pairs(run: str) -> list[str]:
    both = [""] * (2 * len(run) - 1)
    both[::2] = run
    both[1::2] = map(add, run, run[1:])
    return both
