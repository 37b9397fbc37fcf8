"""A few keywords that stand for a question, and which of them a text contains: for engines that match substrings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from unicodedata import normalize

from homing.errors import InvalidArgument
from homing.text.folding import Folded, fold
from homing.text.stopwords import CHINESE, ENGLISH
from homing.text.tokens import FIRST_CJK, MAX_QUERY, MAX_TOKEN, cut, cut_with_offsets, is_run, tokens, word_tokens

# Stop words of two and more characters, and single ones that are hardly ever part of a word; 用 would tear 用户 apart.
_LONG = sorted((word for word in CHINESE if len(word) > 1), key=len, reverse=True)
_SINGLE = ("[的吗呢吧啊呀嘛我你您他她它们这那哪谁把被或]", "(?<![申邀聘])请(?![求假])", "(?<!参)与")
_STOP = re.compile("|".join([*_LONG, *_SINGLE]))

_PREPOSITIONS = "在是和对从给到为将及中里向于由"

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
    folded = Folded(query)
    covering: list[Place] = []
    longer: list[Place] = []
    for start, piece in cut_with_offsets(folded.text):
        if is_run(piece):
            for first, last in _stretches(piece):
                covering += [(start + a, start + b) for a, b in _pairs(piece, first, last)]
                if 2 < last - first <= 4:
                    longer.append((start + first, start + last))
        elif piece.lower().strip("._'-") not in ENGLISH and piece not in CHINESE:
            covering.append((start, start + len(piece)))
    places = _spread(_distinct(folded.text, covering), limit)
    places += _spread(_distinct(folded.text, longer), limit - len(places))
    written = (folded.place(first, last) for first, last in sorted(places))
    found = (normalize("NFKC", query[begin:end]).strip("._'- ")[:MAX_TOKEN] for begin, end in written)
    return [keyword for keyword in dict.fromkeys(found) if keyword]


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
    """Pairs that cover a stretch of a run, the last a triple where need be; a lone character takes its neighbour."""
    if first == last:
        return []
    if last - first == 1:
        if run[first] in CHINESE:
            return []
        return [(first - 1, last)] if first else [(first, last + 1)]
    if (last - first) % 2:
        # Most words are two characters long, so an odd stretch often holds a preposition: 用户|在|注册|账号.
        for at in range(first, last, 2):
            if run[at] in _PREPOSITIONS:
                return _pairs(run, first, at) + _pairs(run, at + 1, last)
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


class Containment:
    """Looks for keywords in texts: as written, in any width, case and script, or by all of their words.

    So 數據 is found by 数据, ＡＰＩ by api, and `fileRead` by `file_read`.
    """

    def __init__(self, keywords: Sequence[str]) -> None:
        self._keywords = [(one, fold(one).lower(), set(tokens(one))) for one in keywords]
        # A word of the index begins a word of the text, joints aside, but for the y of a plural in -ies.
        self._beginnings = {
            one: [_without_joints(word).removesuffix("y") for word in words] for one, _, words in self._keywords
        }

    def in_text(self, text: str) -> tuple[str, ...]:
        """The keywords that the text contains, in their order."""
        folded = fold(text)
        written = folded.lower()
        jointless, known = "", set[str]()
        found = []
        for keyword, plain, words in self._keywords:
            if plain not in written:
                if not words:
                    continue
                if min(words) >= FIRST_CJK:
                    if not all(word in written for word in words):
                        continue
                else:
                    jointless = jointless or _without_joints(written)
                    if not all(one in jointless for one in self._beginnings[keyword]):
                        continue
                    # Cutting a text costs more than all the rest, so only where a word may be there.
                    known = known or {word for piece in cut(folded) if not is_run(piece) for word in word_tokens(piece)}
                    if not words <= known:
                        continue
            found.append(keyword)
        return tuple(found)


def _without_joints(text: str) -> str:
    for joint in "_'.,-":
        text = text.replace(joint, "")
    return text
