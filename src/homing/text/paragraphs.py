"""Paragraphs with their exact place in the original text: what is embedded, found and shown."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal
from zlib import crc32

from homing.errors import InvalidArgument
from homing.text.budget import estimate_tokens
from homing.text.sentences import Passage, cut_long, sentence_ends, trimmed

MAX_TOKENS = 256
"""What the bundled model reads at once: about 256 Chinese characters or 180 English words."""

MIN_CHARS = 24
"""Below this a line of dialogue joins the next."""

MAX_REMEMBERED = 8_192
"""Characters of the longest paragraph whose cuts are remembered for a while."""

Kind = Literal["text", "heading", "code", "table"]

_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(
    r"\s{0,3}#{1,6}\s+\S|\s*(?:第\s?[零〇一二三四五六七八九十百千两\d]{1,9}\s?[章回节卷部篇幕集]|(?i:chapter|part)\s+(?:\d+|[ivxlc]+)\b)"
)
_UNDERLINE = re.compile(r"\s{0,3}(?:=+|-{2,})\s*\Z")
_ITEM = re.compile(r"\s*(?:[-*+•]\s|\d{1,3}[.)、]|>)")
_LINE_END = re.compile(r"[\r\n\u2028\u2029]++")
_DIALOGUE = re.compile(r"\s*[“「『\"—]")

CHINESE_FINISHED = "。！？…”」』）"
FINISHED = CHINESE_FINISHED + ".!?\"')’"
"""What the last character of a finished line may be."""

MAX_WRAPPED = 200
"""Characters; nobody wraps lines that late, so such a line is a paragraph of its own."""

MAX_HEADING = 60
"""Characters; a longer line is a sentence that happens to begin like a heading."""

MAX_FRONT_MATTER = 200
"""Lines."""

Paragraph = Passage


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a text, white space at its borders included."""

    start: int
    end: int
    kind: Kind


def blocks(text: str, *, join_dialogue_below: int) -> Iterator[Block]:
    """The blocks of a text in order; blank lines between them belong to none.

    Blank lines end a block. Where a text has none, a line break ends a block if the line before reads as finished (see
    `_breaks`): whether it does is decided by the two lines beside the break and by nothing further away, so an edit
    moves no other border. Fenced code and front matter hold together over blank lines.
    """
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    fences = _closing_fences(lines)
    number = _front_matter(lines)
    if number:
        yield Block(0, starts[number], "code")
    first = number
    # `first` is where the paragraph began that the line at `number` may go on; `number` itself if there is none.
    while number < len(lines):
        line = lines[number]
        blank = line.isspace()
        kind: Kind
        kind, size = ("text", 1) if blank else _kind(lines, number, fences, begun=first < number)
        if first < number and (
            blank or kind != "text" or _breaks(lines[first], lines[number - 1], line, join_dialogue_below)
        ):
            yield Block(starts[first], starts[number], "text")
            first = number
        number += size
        if kind != "text":
            yield Block(starts[first], starts[number], kind)
        if blank or kind != "text":
            first = number
    if first < number:
        yield Block(starts[first], starts[number], "text")


def _kind(lines: list[str], number: int, fences: dict[str, list[list[int]]], *, begun: bool) -> tuple[Kind, int]:
    """What begins at a line, and how many lines it takes."""
    line = lines[number]
    stripped = line.strip()
    if stripped[0] in "`~" and (fence := _FENCE.match(line)):
        closing = _next_fence(fences, fence[1], number)
        return ("code", closing - number + 1) if closing is not None else ("text", 1)
    if stripped[0] == "|":
        size = 1
        while number + size < len(lines) and lines[number + size].lstrip()[:1] == "|":
            size += 1
        return "table", size
    if len(stripped) > MAX_HEADING:
        return "text", 1
    if _HEADING.match(line):
        return "heading", 1
    if not begun and number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) and not _UNDERLINE.match(line):
        return "heading", 2
    return "text", 1


def _breaks(first: str, above: str, below: str, join_dialogue_below: int) -> bool:
    """Whether a paragraph, whose first line is given, ends between two lines that no blank line parts.

    Full-width indentation always begins a paragraph. Otherwise the line above must read as finished, and it must not be
    that the writer only wrapped it: Chinese is not wrapped, Western text is wrapped near 80 characters. Lists hold
    together, and so do short lines of dialogue.
    """
    above = above.rstrip()
    if len(above) < join_dialogue_below + 4 and _DIALOGUE.match(above):
        spoken = above.strip().encode("utf-8", "surrogatepass")
        # Dialogue may go on for pages; about every fourth line ends a block, and which ones depends on them alone.
        if len(above.strip()) < join_dialogue_below and crc32(spoken) % 4:
            return False
    if below[0] == "\u3000":
        return True
    if _ITEM.match(below) or _ITEM.match(above) or _ITEM.match(first):
        return False
    if len(above) > MAX_WRAPPED:
        return True
    if above[-1] not in FINISHED:
        return False
    if above[-1] in CHINESE_FINISHED or "\u3400" <= above[-2:-1] <= "\u9fff" or below.startswith(("  ", "\t")):
        return True
    next_word = below.split(maxsplit=1)[0]
    return len(above) > 100 or len(above) + len(next_word) < 60


def _front_matter(lines: list[str]) -> int:
    """How many lines of YAML front matter there are."""
    if not lines or lines[0].lstrip("\ufeff").rstrip() != "---":
        return 0
    for number, line in enumerate(lines[1:MAX_FRONT_MATTER], 2):
        if line.rstrip() in ("---", "..."):
            return number
    return 0


def _closing_fences(lines: list[str]) -> dict[str, list[list[int]]]:
    """Line numbers that can close a fence, by its character and length (8 and more are one)."""
    fences: dict[str, list[list[int]]] = defaultdict(lambda: [[] for _ in range(9)])
    for number, line in enumerate(lines):
        if ("```" in line or "~~~" in line) and (fence := _FENCE.match(line)) and not fence[2].strip():
            fences[fence[1][0]][min(len(fence[1]), 8)].append(number)
    return fences


def _next_fence(fences: dict[str, list[list[int]]], opening: str, number: int) -> int | None:
    """The line that closes a fence; None if nothing does, for then it is not one: the rest would be swallowed."""
    nearest: int | None = None
    for closing in fences[opening[0]][min(len(opening), 8) :]:
        at = bisect_right(closing, number)
        if at < len(closing) and (nearest is None or closing[at] < nearest):
            nearest = closing[at]
    return nearest


def paragraphs(text: str, *, max_tokens: int = MAX_TOKENS, min_chars: int = MIN_CHARS) -> list[Paragraph]:
    """The paragraphs of a text, in order and apart from each other; every word of it is in one of them.

    A paragraph is what its writer parted by blank lines, or, where there are none, by lines (as Chinese novels are
    written). A heading goes with what follows it. Fenced code, a table, front matter and a list are not parted by what
    stands in them. What is longer than `max_tokens` (by `estimate_tokens`) is cut at ends of sentences, code and tables
    at ends of lines. Lines of dialogue shorter than `min_chars` join the next line; 0 keeps each by itself. Stretches
    without a letter, digit or emoji (scene breaks, rules) are left out.

    Borders depend only on the lines beside them, so an edit to one paragraph leaves the others as they were. Takes time
    in proportion to the text.
    """
    if max_tokens < 8:
        raise InvalidArgument(f"max_tokens must be at least 8, or a sentence would be cut into words; got {max_tokens}")
    found: list[Paragraph] = []
    for unit in _with_headings(blocks(text, join_dialogue_below=min_chars)):
        for start, end in _short_enough(text, unit, max_tokens):
            found += trimmed(text, start, end)
    return found


def _with_headings(parts: Iterator[Block]) -> Iterator[Block]:
    heading: Block | None = None
    for part in parts:
        if part.kind == "heading":
            heading = Block(heading.start if heading else part.start, part.end, "heading")
        else:
            yield Block(heading.start if heading else part.start, part.end, part.kind)
            heading = None
    if heading:
        yield heading


def _short_enough(text: str, unit: Block, max_tokens: int) -> Iterator[tuple[int, int]]:
    size = unit.end - unit.start
    # No character is estimated at more than one token, so most units need no counting.
    if size <= max_tokens:
        return iter([(unit.start, unit.end)])
    cut = _cut if size <= MAX_REMEMBERED else _cut.__wrapped__
    found = cut(text[unit.start : unit.end], unit.kind, max_tokens)
    return ((unit.start + first, unit.start + last) for first, last in found)


# Who edits a text has the same paragraphs cut again and again.
@lru_cache(maxsize=256)
def _cut(unit: str, kind: Kind, max_tokens: int) -> tuple[tuple[int, int], ...]:
    if estimate_tokens(unit) <= max_tokens:
        return ((0, len(unit)),)
    ends = sentence_ends(unit) if kind == "text" else (line.end() for line in _LINE_END.finditer(unit))
    return tuple(cut_long(unit, ends, max_tokens))
