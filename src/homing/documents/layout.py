"""How a document is cut into chunks, and how it lies in the database: in blocks, each with its text and its chunks.

Offsets inside a block are counted from its start, so an edit rewrites the blocks that it touches and no others: in a
novel of ten megabytes a new first paragraph writes some kilobytes. Chunks may overlap: a block ends where the next one
begins, and the text that is kept with it goes on as far as its last chunk reaches.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from zlib import crc32

from homing.stores.arguments import is_encodable
from homing.text.paragraphs import MAX_TOKENS, MIN_CHARS, Paragraph, paragraphs
from homing.text.sentences import windows

MIN_BLOCK = 8_192
MAX_BLOCK = 32_768
"""Characters of a block. Between the two it ends before a chunk that is chosen by what it says, one in 32: so the
borders fall on the same places again after an edit further up."""
PARAGRAPHS, WINDOWS = "paragraphs", "windows"
"""How a document is cut: what people write by paragraph, what was uploaded in windows that overlap."""
_SPOKEN = re.compile(r"[“「『\"—]")
_HALF = re.compile("[\ud800-\udfff]")


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
class BlockChunks:
    """The chunks of a block, column by column, with offsets counted from its start.

    Plain tuples of numbers are nothing to the garbage collector; a hundred thousand objects would make it halt the
    process for longer than a frame, now and then.
    """

    numbers: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    digests: tuple[bytes, ...]
    updated: tuple[float, ...]

    @staticmethod
    def of(chunks: Sequence[Placed], shift: int = 0) -> BlockChunks:
        """Chunks, moved by so many characters."""
        return BlockChunks(
            tuple([one.number for one in chunks]),
            tuple([one.start + shift for one in chunks]),
            tuple([one.end + shift for one in chunks]),
            tuple([one.digest for one in chunks]),
            tuple([one.updated for one in chunks]),
        )

    def placed(self, shift: int = 0) -> Iterator[Placed]:
        """One by one, moved by so many characters."""
        for number, start, end, digest, updated in zip(
            self.numbers, self.starts, self.ends, self.digests, self.updated, strict=True
        ):
            yield Placed(number, start + shift, end + shift, digest, updated)


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A block to write: its text, how much of that is its own, and its chunks."""

    text: str
    length: int
    wide: int
    chunks: BlockChunks


@dataclass(frozen=True, slots=True)
class Stored:
    """A document as it is stored: its text, its blocks, and for each block the chunks in it."""

    text: str = ""
    blocks: tuple[Block, ...] = ()
    chunks: tuple[BlockChunks, ...] = ()

    def starts(self) -> list[int]:
        """Where each block begins, and where the last one ends."""
        return [0, *accumulate(block.length for block in self.blocks)]

    def placed(self) -> list[Placed]:
        """The chunks in order, with offsets in the text."""
        return [one for start, held in zip(self.starts(), self.chunks, strict=False) for one in held.placed(start)]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Which blocks stay at the front and at the back, and what stands between them now."""

    front: int
    back: int
    between: tuple[NewBlock, ...]


def rewrite(
    stored: Stored, text: str, start: int, stop: int, chunks: Sequence[Placed], *, first: int, last: int
) -> Rewrite:
    """What to write so that the blocks from `first` up to `last` hold `text[start:stop]` and its chunks.

    Blocks at the borders that would be written as they are stay.
    """
    fresh = tuple(_cut(text, start, stop, chunks))
    starts = stored.starts()
    old = [_kept(stored, starts, at) for at in range(first, last)]
    new = [(block.length, block.text, block.chunks) for block in fresh]
    front = alike_from_the_start(old, new)
    back = alike_from_the_start(old[front:][::-1], new[front:][::-1])
    return Rewrite(first + front, len(stored.blocks) - last + back, fresh[front : len(fresh) - back])


def _kept(stored: Stored, starts: Sequence[int], at: int) -> tuple[int, str, BlockChunks]:
    """A stored block as it would be written."""
    length, held = stored.blocks[at].length, stored.chunks[at]
    reach = max(length, *held.ends) if held.ends else length
    return length, stored.text[starts[at] : starts[at] + reach], held


def alike_from_the_start(old: Sequence[object], new: Sequence[object]) -> int:
    """How many are the same, one by one, before the first that differs."""
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


def utf16_length(text: str) -> int:
    """How many units a text has in UTF-16."""
    return len(text) + wide_characters(text)


def wide_characters(text: str) -> int:
    """How many characters take two units in UTF-16."""
    if text.isascii() or max(text) < "\U00010000":
        return 0
    return sum(character > "\uffff" for character in text)


def _cut(text: str, start: int, stop: int, chunks: Sequence[Placed]) -> Iterator[NewBlock]:
    held: list[Placed] = []
    for one in chunks:
        size = one.start - start
        if held and (size > MAX_BLOCK or (size > MIN_BLOCK and one.digest[0] < 8)):
            yield _block(text, start, one.start, held)
            start, held = one.start, []
        held.append(one)
    if start < stop:
        yield _block(text, start, stop, held)


def _block(text: str, start: int, stop: int, chunks: Sequence[Placed]) -> NewBlock:
    reach = max([stop, *(one.end for one in chunks)])
    return NewBlock(text[start:reach], stop - start, wide_characters(text[start:stop]), BlockChunks.of(chunks, -start))


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text and the digest of what it says; line ends are written alike before they are digested."""

    start: int
    end: int
    digest: bytes


def split(text: str, start: int = 0, end: int | None = None) -> list[Piece]:
    """The pieces of `text[start:end]`, in order and apart from each other; offsets are those of `text`."""
    part = text if start == 0 and end is None else text[start:end]
    return [
        Piece(start + first, start + last, digest_of(part[first:last]))
        for first, last in _with_context(part, paragraphs(part))
    ]


def split_windows(text: str) -> list[Piece]:
    """The windows of a text, in order; neighbours overlap."""
    return [Piece(one.start, one.end, digest_of(one.text)) for one in windows(text)]


def embedded_text(text: str) -> str:
    """What is embedded and indexed for a piece: its text with plain line ends, and no halves of characters."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    return plain if is_encodable(plain) else _HALF.sub("\ufffd", plain)


def digest_of(text: str) -> bytes:
    """What tells whether two pieces say the same."""
    return hashlib.blake2b(embedded_text(text).encode(), digest_size=16).digest()


def _with_context(text: str, found: Sequence[Paragraph]) -> Iterator[tuple[int, int]]:
    """Short lines of dialogue go with what follows them: alone they say nothing that could be searched by meaning.

    Long dialogues are parted at lines chosen by what they say, so that a line put in regroups its neighbours only.
    """
    begun: tuple[int, int] | None = None
    for one in found:
        if begun is not None and one.end - begun[0] > MAX_TOKENS:
            yield begun
            begun = None
        start = one.start if begun is None else begun[0]
        spoken = one.end - one.start < MIN_CHARS and _SPOKEN.match(text, one.start) is not None
        if spoken and (begun is None or crc32(one.text.encode("utf-8", "surrogatepass")) % 4):
            begun = (start, one.end)
        else:
            yield start, one.end
            begun = None
    if begun is not None:
        yield begun
