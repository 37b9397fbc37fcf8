"""From the stored text to a new one: what is kept, what is written, and which chunk is which.

A new text is compared with the stored one, and only the blocks around the difference are cut into paragraphs again;
whether that gives what cutting all of it would give is checked, and where it may not, all of it is cut. Which paragraph
is which is seen by what they say first, then by where they stand.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from homing.documents.layout import (
    PARAGRAPHS,
    WINDOWS,
    Piece,
    Placed,
    Rewrite,
    Stored,
    alike_from_the_start,
    common_end,
    common_start,
    rewrite,
    split,
    split_windows,
)
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
    before = [one for held in stored.chunks[window.first : window.last] for one in held.placed()]
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


@dataclass(frozen=True, slots=True)
class Alignment:
    """For each new item the index of the old one that it continues, or None where it is new.

    `same` are the new items that say what they said, in their old order among each other; `moved` say the same at
    another place; `changed` are all others. `removed` are old items that nothing continues.
    """

    former: tuple[int | None, ...]
    same: tuple[int, ...]
    moved: tuple[int, ...]
    changed: tuple[int, ...]
    removed: tuple[int, ...]


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> Alignment:
    """Match the items of two lists.

    Equal items belong together, wherever they stand; the longest run of them that kept its order did not move. What is
    left between two items that stayed was edited there: it is paired in order, so an edited paragraph keeps its
    identity. Takes `n log n`.
    """
    front = alike_from_the_start(old, new)
    back = alike_from_the_start(old[front:][::-1], new[front:][::-1])
    former: list[int | None] = [None] * len(new)
    former[:front] = range(front)
    for at in range(back):
        former[len(new) - 1 - at] = len(old) - 1 - at
    pairs = _equal(old[front : len(old) - back], new[front : len(new) - back])
    stayed = _longest_in_order([before for before, _ in pairs])
    same = set(range(front)) | set(range(len(new) - back, len(new)))
    moved: list[int] = []
    for number, (before, after) in enumerate(pairs):
        former[front + after] = front + before
        if number in stayed:
            same.add(front + after)
        else:
            moved.append(front + after)
    _pair_edited(former, same, len(old), front, len(new) - back)
    kept = set(former)
    settled = same | set(moved)
    return Alignment(
        tuple(former),
        tuple(sorted(same)),
        tuple(moved),
        tuple(at for at in range(front, len(new) - back) if at not in settled),
        tuple(at for at in range(front, len(old) - back) if at not in kept),
    )


def _equal(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of equal items, in the order of the new list; of several equal ones the first goes with the first."""
    places: dict[Hashable, deque[int]] = defaultdict(deque)
    for at, item in enumerate(old):
        places[item].append(at)
    return [(places[item].popleft(), at) for at, item in enumerate(new) if places.get(item)]


def _longest_in_order(values: Sequence[int]) -> set[int]:
    """The indexes of a longest ascending part of the values."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, value in enumerate(values):
        length = bisect_left(tails, value)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(value)
            ends.append(at)
        else:
            tails[length], ends[length] = value, at
    chosen: set[int] = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        chosen.add(at)
        at = before[at]
    return chosen


def _pair_edited(former: list[int | None], same: set[int], old: int, start: int, stop: int) -> None:
    """Between two items that stayed, give the new ones that are left the identity of the old ones that are left."""
    taken = {one for one in former if one is not None}
    left = [at for at in range(start, old - (len(former) - stop)) if at not in taken]
    following = 0
    gap: list[int] = []
    for at in range(start, stop + 1):
        if at < stop and at not in same:
            if former[at] is None:
                gap.append(at)
            continue
        # The next item that stayed bounds what may have been edited before it.
        bound = former[at] if at < len(former) else old
        assert bound is not None
        for new in gap:
            if following < len(left) and left[following] < bound:
                former[new] = left[following]
                following += 1
        while following < len(left) and left[following] < bound:
            following += 1
        gap = []
