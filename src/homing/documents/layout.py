"""How a document lies in the database: cut into blocks, each with its text and the chunks in it.

Offsets inside a block are counted from its start, so an edit rewrites the blocks that it touches and no others: in a
novel of ten megabytes a new first paragraph writes some kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

SHORTEST = 8_192
LONGEST = 32_768
"""Characters of a block. Between the two it ends before a chunk that is chosen by what it says, one in 32: so the
borders fall on the same places again after an edit further up."""


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a document: its row, its length in characters, and how many of them take two UTF-16 units."""

    key: int
    length: int
    wide: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A chunk: its number, where it is, the digest of what it says, and when that changed."""

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
class Stored:
    """A document as it is stored: its text, its blocks, and for each block the chunks in it, counted from its start."""

    text: str = ""
    blocks: tuple[Block, ...] = ()
    chunks: tuple[tuple[Placed, ...], ...] = ()

    def starts(self) -> list[int]:
        """Where each block begins, and where the last one ends."""
        return [0, *accumulate(block.length for block in self.blocks)]

    def placed(self) -> list[Placed]:
        """The chunks in order, with offsets in the text."""
        return [moved(one, start) for start, held in zip(self.starts(), self.chunks, strict=False) for one in held]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Which blocks stay at the front and at the back, and what stands between them now."""

    front: int
    back: int
    between: tuple[NewBlock, ...]


def rewrite(stored: Stored, text: str, chunks: Sequence[Placed], *, first: int, last: int) -> Rewrite:
    """What to write so that the blocks from `first` up to `last` hold a text and its chunks, counted from its start.

    Blocks at the borders that would be written as they are stay.
    """
    fresh = tuple(_cut(text, chunks))
    starts = stored.starts()
    old = [(stored.text[starts[at] : starts[at + 1]], stored.chunks[at]) for at in range(first, last)]
    new = [(block.text, block.chunks) for block in fresh]
    front = _alike(old, new)
    back = _alike(old[front:][::-1], new[front:][::-1])
    return Rewrite(first + front, len(stored.blocks) - last + back, fresh[front : len(fresh) - back])


_Held = tuple[str, tuple[Placed, ...]]


def _alike(old: Sequence[_Held], new: Sequence[_Held]) -> int:
    """How many blocks are the same from the start."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


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


def moved(chunk: Placed, shift: int) -> Placed:
    """The chunk so many characters further on."""
    return Placed(chunk.number, chunk.start + shift, chunk.end + shift, chunk.digest, chunk.updated)


def _cut(text: str, chunks: Sequence[Placed]) -> Iterator[NewBlock]:
    start = 0
    held: list[Placed] = []
    for one in chunks:
        size = one.start - start
        if held and (size > LONGEST or (size > SHORTEST and one.digest[0] < 8)):
            yield _block(text, start, one.start, held)
            start, held = one.start, []
        held.append(one)
    if start < len(text):
        yield _block(text, start, len(text), held)


def _block(text: str, start: int, stop: int, chunks: Sequence[Placed]) -> NewBlock:
    part = text[start:stop]
    return NewBlock(part, wide_characters(part), tuple(moved(one, -start) for one in chunks))
