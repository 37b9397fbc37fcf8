"""From the stored text to a new one: what is kept, what is written, and which chunk is which.

A new text is compared with the stored one, and only the blocks around the difference are cut into paragraphs again;
whether that gives what cutting all of it would give is checked, and where it may not, all of it is cut.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from homing.documents.alignment import Alignment, align
from homing.documents.layout import Placed, Rewrite, Stored, common_end, common_start, rewrite
from homing.documents.splitting import PARAGRAPHS, WINDOWS, Piece, split, split_windows
from homing.text.paragraphs import MAX_FRONT_MATTER

FENCES = ("```", "~~~")
"""A fence of code reaches as far as its other end, so with one of these nothing can be told from the lines around."""

_BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t\u3000]*(?:\r\n|\r|\n)[ \t\u3000]*\Z")
_SOME_BLANK_LINE = re.compile(r"\n\r?\n")
_SENTINEL = "\n\nx"
STRETCH = 1 << 17
"""Characters that are cut at once."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What a new text changes, by the numbers of chunks; of those that changed also where they stand in the new text.

    `unchanged` are in several lists, most of which are shared with what is stored. `following` is the next number that
    is free.
    """

    rewrite: Rewrite
    changed: tuple[Placed, ...]
    unchanged: tuple[tuple[int, ...], ...]
    moved: tuple[int, ...]
    removed: tuple[int, ...]
    following: int

    @property
    def chunks(self) -> int:
        """How many chunks the document has now."""
        return len(self.changed) + sum(map(len, self.unchanged)) + len(self.moved)


@dataclass(frozen=True, slots=True)
class _Window:
    """The blocks from `first` up to `last`, where they begin in both texts, and what they are cut into now."""

    first: int
    last: int
    start: int
    stop: int
    pieces: list[Piece]


def edit(stored: Stored, text: str, following: int, cut: str = PARAGRAPHS) -> Edit:
    """How to bring a stored document to a new text; new chunks are numbered from `following` on."""
    if cut == WINDOWS:
        window = _Window(0, len(stored.blocks), 0, len(text), split_windows(text))
    else:
        window = _window(stored, text) or _Window(0, len(stored.blocks), 0, len(text), _cut_all(text))
    before = _chunks(stored, window)
    aligned = align([one.digest for one in before], [one.digest for one in window.pieces])
    after, following = _numbered(before, aligned, window, following)
    before_it, behind_it = stored.chunks[: window.first], stored.chunks[window.last :]
    same = tuple([after[at].number for at in aligned.same])
    return Edit(
        rewrite(stored, text, window.start, window.stop, after, first=window.first, last=window.last),
        tuple(after[at] for at in aligned.changed),
        (*(held.numbers for held in before_it), same, *(held.numbers for held in behind_it)),
        tuple(after[at].number for at in aligned.moved),
        tuple(before[at].number for at in aligned.removed),
        following,
    )


def _window(stored: Stored, text: str) -> _Window | None:
    """The blocks around what changed, cut again; None where all of the text has to be."""
    old = stored.text
    if len(stored.blocks) < 4 or _has_fence(old) or _has_fence(text):
        return None
    same = common_start(old, text)
    tail = common_end(old, text, min(len(old), len(text)) - same)
    starts = stored.starts()
    # One block more on either side: its chunks must come out as they were, which shows that the borders hold.
    first = max(0, bisect_right(starts, same) - 2)
    last = min(len(stored.blocks), bisect_right(starts, len(old) - tail) + 1)
    while first > 0 and not _BLANK_LINE.search(old[max(0, starts[first] - 80) : starts[first]]):
        first -= 1
    while last < len(stored.blocks) and not _BLANK_LINE.search(old[max(0, starts[last] - 80) : starts[last]]):
        last += 1
    if first == 0 and last == len(stored.blocks):
        return None
    start, stop = starts[first], starts[last] + len(text) - len(old)
    if start < max(_front_matter_reach(old), _front_matter_reach(text)):
        return None
    pieces = _cut_alone(text, start, stop, at_end=last == len(stored.blocks))
    if pieces is None or not _holds(stored, first, last, pieces):
        return None
    return _Window(first, last, start, stop, pieces)


def _cut_all(text: str) -> list[Piece]:
    """The pieces of a whole text, a stretch at a time: nobody should wait for the interpreter while megabytes are cut.

    A stretch ends at a blank line, and where it does not stand alone it is cut together with the next.
    """
    if len(text) <= 2 * STRETCH or _has_fence(text):
        return split(text)
    pieces: list[Piece] = []
    start, reach = 0, max(STRETCH, _front_matter_reach(text))
    while start < len(text):
        blank = _SOME_BLANK_LINE.search(text, start + reach)
        stop = len(text) if blank is None else blank.end()
        found = _cut_alone(text, start, stop, at_end=stop == len(text))
        if found is None:
            if stop == len(text):
                return split(text)
            reach = stop - start
            continue
        pieces += found
        start, reach = stop, STRETCH
    return pieces


def _has_fence(text: str, step: int = 1 << 18) -> bool:
    # In parts: looking through megabytes at once would keep every other thread of the interpreter waiting.
    return any(mark in text[at : at + step + 2] for at in range(0, len(text), step) for mark in FENCES)


def _front_matter_reach(text: str) -> int:
    """How far front matter may go on that a text begins with; 0 where it does not begin so."""
    if not text[:2].lstrip("\ufeff").startswith("-"):
        return 0
    lines = text.splitlines(keepends=True)
    begins = lines[0].lstrip("\ufeff").rstrip() == "---"
    return sum(map(len, lines[:MAX_FRONT_MATTER])) if begins else 0


def _cut_alone(text: str, start: int, stop: int, *, at_end: bool) -> list[Piece] | None:
    """The pieces of a part of a text; None where they would be others in the whole."""
    line = text.rfind("\n", 0, start) + 1
    line = text.rfind("\r", line, start) + 1 or line
    if line and text.startswith("---", line):
        # Here it is a rule; at the start of a text it would begin front matter.
        return None
    part = text[line:stop]
    pieces = split(part if at_end else part + _SENTINEL)
    if not at_end:
        if pieces[-1].start != len(part) + len(_SENTINEL) - 1:
            # The last paragraph goes together with what follows it.
            return None
        pieces.pop()
    return [Piece(line + one.start, line + one.end, one.digest) for one in pieces]


def _holds(stored: Stored, first: int, last: int, pieces: Sequence[Piece]) -> bool:
    """Whether the outermost chunks are what they were, where the window has neighbours."""
    held = stored.chunks[first:last]
    if not pieces or not held[0].digests or not held[-1].digests:
        return False
    return (first == 0 or pieces[0].digest == held[0].digests[0]) and (
        last == len(stored.blocks) or pieces[-1].digest == held[-1].digests[-1]
    )


def _chunks(stored: Stored, window: _Window) -> list[Placed]:
    return [one for held in stored.chunks[window.first : window.last] for one in held.placed()]


def _numbered(
    before: Sequence[Placed], aligned: Alignment, window: _Window, following: int
) -> tuple[list[Placed], int]:
    stamp = time.time()
    changed = set(aligned.changed)
    after: list[Placed] = []
    for at, (piece, former) in enumerate(zip(window.pieces, aligned.former, strict=True)):
        if former is None:
            number, following = following, following + 1
        else:
            number = before[former].number
        updated = stamp if former is None or at in changed else before[former].updated
        after.append(Placed(number, piece.start, piece.end, piece.digest, updated))
    return after, following
