"""How a document lies in the database: cut into blocks, each with its text and the chunks in it.

Offsets inside a block are counted from its start, so an edit rewrites the blocks that it touches and no others: in a
novel of ten megabytes a new first paragraph writes some kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

BLOCK_CHARACTERS = 16_384
"""A block is closed after the chunk that fills it so far."""


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a document: its row, its length in characters, and how many of them take two UTF-16 units."""

    key: int
    length: int
    wide: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A chunk in a document: its number, where it is, the digest of what it says, and when that changed."""

    number: int
    start: int
    end: int
    digest: bytes
    updated: float


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block to write: its text, and its chunks with offsets counted from its start."""

    text: str
    wide: int
    chunks: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Which blocks stay at the front and at the back, and what stands between them now."""

    front: int
    back: int
    between: tuple[NewBlock, ...]


def rewrite(old: str, blocks: Sequence[Block], before: Sequence[Placed], new: str, after: Sequence[Placed]) -> Rewrite:
    """The smallest part of the blocks to write so that the document has the new text and chunks."""
    same = common_start(old, new)
    front, placed = _kept(blocks, before, after, same)
    start = sum(block.length for block in blocks[:front])
    shift = len(new) - len(old)
    tail = common_end(old, new, min(len(old), len(new)) - start)
    back = _kept_back(blocks[front:], before, after, len(old), tail, shift)
    stop = len(new) - sum(block.length for block in blocks[len(blocks) - back :])
    chunks = [one for one in after[placed:] if one.start < stop]
    return Rewrite(front, back, tuple(_cut(new, start, stop, chunks)))


def common_start(old: str, new: str, step: int = 1 << 16) -> int:
    """How many characters two texts have in common from the start."""
    shorter = min(len(old), len(new))
    at = 0
    while step:
        while at + step <= shorter and old[at : at + step] == new[at : at + step]:
            at += step
        step //= 2
    return at


def common_end(old: str, new: str, most: int, step: int = 1 << 16) -> int:
    """How many characters, at most so many, two texts have in common from the end."""
    at, here, there = 0, len(old), len(new)
    while step:
        while at + step <= most and old[here - at - step : here - at] == new[there - at - step : there - at]:
            at += step
        step //= 2
    return at


def wide_characters(text: str) -> int:
    """How many characters take two units in UTF-16."""
    if text.isascii() or max(text) < "\U00010000":
        return 0
    return sum(character > "\uffff" for character in text)


def _kept(blocks: Sequence[Block], before: Sequence[Placed], after: Sequence[Placed], same: int) -> tuple[int, int]:
    """How many blocks at the front are as they were, and how many chunks are in them."""
    kept = placed = 0
    for end in accumulate(block.length for block in blocks):
        if end > same:
            break
        count = placed
        while count < len(before) and before[count].end <= end:
            count += 1
        if before[placed:count] != after[placed:count] or (count < len(after) and after[count].start < end):
            break
        kept, placed = kept + 1, count
    return kept, placed


def _kept_back(
    blocks: Sequence[Block], before: Sequence[Placed], after: Sequence[Placed], length: int, tail: int, shift: int
) -> int:
    kept = placed = 0
    start = length
    for block in reversed(blocks):
        start -= block.length
        if length - start > tail:
            break
        count = placed
        while count < min(len(before), len(after)) and before[-1 - count].start >= start:
            if moved(before[-1 - count], shift) != after[-1 - count]:
                return kept
            count += 1
        rest = (before[-1 - count : len(before) - count], after[-1 - count : len(after) - count])
        if any(one.end > start for one in rest[0]) or any(one.end > start + shift for one in rest[1]):
            break
        kept, placed = kept + 1, count
    return kept


def moved(chunk: Placed, shift: int) -> Placed:
    """The chunk so many characters further on."""
    return replace(chunk, start=chunk.start + shift, end=chunk.end + shift) if shift else chunk


def _cut(text: str, start: int, stop: int, chunks: Sequence[Placed]) -> Iterator[NewBlock]:
    held: list[Placed] = []
    for one in chunks:
        if held and one.start - start > BLOCK_CHARACTERS:
            yield _block(text, start, one.start, held)
            start, held = one.start, []
        held.append(one)
    if start < stop:
        yield _block(text, start, stop, held)


def _block(text: str, start: int, stop: int, chunks: Sequence[Placed]) -> NewBlock:
    part = text[start:stop]
    return NewBlock(part, wide_characters(part), tuple(moved(one, -start) for one in chunks))
