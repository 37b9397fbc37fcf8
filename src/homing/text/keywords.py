"""A few keywords that stand for a question, for engines that match substrings instead of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import normalize

from homing.errors import InvalidArgument
from homing.text.folding import fold_with_offsets
from homing.text.stopwords import CHINESE, ENGLISH
from homing.text.tokens import MAX_QUERY
from homing.text.words import MAX_TOKEN, cut_with_offsets, is_run

# Stop words of two and more characters, and single ones that are hardly ever part of a word; 用 would tear 用户 apart.
_LONG = sorted((word for word in CHINESE if len(word) > 1), key=len, reverse=True)
_STOP = re.compile("|".join([*_LONG, "[的吗呢吧啊呀嘛我你您他她它们这那哪谁请把被与或]"]))

Place = tuple[int, int]


def extract_keywords(query: str, limit: int = 10) -> list[str]:
    """At most `limit` keywords of a query, in its order: words, numbers, and Chinese n-grams of 2-4 characters.

    Stop words of both languages are left out; a query of nothing else gives an empty list. The keywords are spread over
    the whole query: each stretch of Chinese is covered by pairs first, and what room is left goes to longer n-grams.
    `C++`, `GPT-4o`, `file_read` and `3.14` are words. They are spelled as in the query (traditional characters stay),
    except that full-width forms become plain ones. Reads the first `MAX_QUERY` characters.
    """
    if limit < 0:
        raise InvalidArgument(f"limit must not be negative; got {limit}")
    query = query[:MAX_QUERY]
    folded, origin = fold_with_offsets(query)
    covering: list[Place] = []
    longer: list[Place] = []
    for start, piece in cut_with_offsets(folded):
        if is_run(piece):
            for first, last in _stretches(piece):
                covering += [(start + a, start + b) for a, b in _pairs(piece, first, last)]
                if 2 < last - first <= 4:
                    longer.append((start + first, start + last))
        elif piece.lower().strip("._'-") not in ENGLISH and piece not in CHINESE:
            covering.append((start, start + len(piece)))
    places = _spread(_distinct(folded, covering), limit)
    places += _spread(_distinct(folded, longer), limit - len(places))
    found = (normalize("NFKC", query[origin[first] : origin[last]]).strip("._'- ") for first, last in sorted(places))
    return [keyword[:MAX_TOKEN] for keyword in dict.fromkeys(found) if keyword]


def _stretches(run: str) -> Iterator[Place]:
    """What stop words leave of a run."""
    start = 0
    for stop in _STOP.finditer(run):
        if stop.start() > start:
            yield start, stop.start()
        start = stop.end()
    if start < len(run):
        yield start, len(run)


def _pairs(run: str, first: int, last: int) -> list[Place]:
    """Pairs that cover a stretch of a run, the last a triple where the length is odd; a lone character takes its
    neighbour."""
    if last - first == 1:
        if run[first] in CHINESE:
            return []
        return [(first - 1, last)] if first else [(first, last + 1)]
    if (last - first) % 2 and run[first] in CHINESE:  # most words are two characters long: 在|注册|账号
        first += 1
    ends = [*range(first + 2, last - 1, 2), last]
    pairs = zip([first, *ends], ends, strict=False)
    return [(start, end) for start, end in pairs if not CHINESE.issuperset(run[start:end])]


def _distinct(folded: str, places: list[Place]) -> list[Place]:
    return list({folded[first:last].lower(): (first, last) for first, last in reversed(places)}.values())[::-1]


def _spread(places: list[Place], limit: int) -> list[Place]:
    """At most `limit` of the places, evenly from first to last."""
    if len(places) <= limit:
        return places
    return [places[at * len(places) // limit] for at in range(limit)]
