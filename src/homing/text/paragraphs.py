"""Paragraphs with their exact place in the original text: what is embedded, found and shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from homing.errors import InvalidArgument
from homing.text.blocks import Block, blocks
from homing.text.budget import estimate_tokens
from homing.text.sentences import cut_long, sentence_ends

MAX_TOKENS = 256
"""What the bundled model reads at once: about 256 Chinese characters or 180 English words."""

MIN_CHARS = 24
"""Below this a line of dialogue joins the next."""

_MEANS_SOMETHING = re.compile(r"[^\W_]|[\u2190-\u2bff\U0001f000-\U0001faff]")
_LINE_END = re.compile(r"[\r\n\u2028\u2029]++")
_BORDER = " \t\r\n\v\f\x1c\x1d\x1e\x1f\x85\u3000\ufeff\u2028\u2029\xa0"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A stretch of a text: `text == original[start:end]`, with no white space at its borders."""

    start: int
    end: int
    text: str


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
            if _MEANS_SOMETHING.search(text, start, end):
                found.append(_trimmed(text, start, end))
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
    # No character is estimated at more than one token, so most units need no counting.
    if unit.end - unit.start <= max_tokens or estimate_tokens(text[unit.start : unit.end]) <= max_tokens:
        return iter([(unit.start, unit.end)])
    if unit.kind == "text":
        ends = sentence_ends(text, unit.start, unit.end)
    else:
        ends = (line.end() for line in _LINE_END.finditer(text, unit.start, unit.end))
    return cut_long(text, unit.start, unit.end, ends, estimate_tokens, max_tokens)


def _trimmed(text: str, start: int, end: int) -> Paragraph:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip(_BORDER))
    end -= len(piece) - len(piece.rstrip(_BORDER))
    return Paragraph(start, end, text[start:end])
