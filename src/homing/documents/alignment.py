"""Which paragraph of the new text is which of the old one: by what they say first, then by where they stand."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


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


def alike_from_the_start(old: Sequence[object], new: Sequence[object]) -> int:
    """How many are the same, one by one, before the first that differs."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


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
