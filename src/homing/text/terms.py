"""Words as numbers: what the keyword index keeps of a text.

A term is known by 64 bits. Those of Chinese are computed for all characters of a text at once, without making the words
themselves, of which a text has hundreds that nobody else wants to see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b
from itertools import chain

import numpy as np
import numpy.typing as npt

from homing.text.folding import fold
from homing.text.tokens import FIRST_CJK, characters_and_pairs, cut, split_word

Terms = npt.NDArray[np.uint64]

SHORT = 7
"""Bytes of a term that needs no hash."""
MIX = 0x9E3779B97F4A7C15
"""An odd number: multiplied by it, no two numbers become one."""
LAST_SHORT = "\uffff"
"""Up to here a pair of characters is a short term."""

_ahead: ContextVar[Mapping[str, Terms]] = ContextVar("terms made ahead", default={})  # noqa: B039


class _Words(dict[str, tuple[int, ...]]):
    """The numbers of the tokens of words; grows with the words that are met, and begins anew where those are many."""

    MOST = 50_000

    def __missing__(self, piece: str) -> tuple[int, ...]:
        if len(self) >= self.MOST:
            self.clear()
        self[piece] = found = tuple(map(_number, split_word(piece)))
        return found


_words = _Words()


def numbers_of(terms: Iterable[str]) -> Terms:
    """The 64 bits that each of these terms is known by."""
    return np.array([_number(term) for term in terms], np.uint64)


def _number(term: str) -> int:
    """The bytes of the term where it is short, else those of its hash, mixed.

    Mixed, so that nobody reads in a file what was said: words of a removed text stay in it until segments are joined.
    """
    encoded = term.encode("utf-8", "surrogatepass")
    if len(encoded) > SHORT:
        # The last byte keeps them apart from every short one.
        encoded = blake2b(encoded, digest_size=SHORT).digest() + b"\xff"
    return int.from_bytes(encoded, "little") * MIX & 0xFFFF_FFFF_FFFF_FFFF


def terms_in(text: str) -> Terms:
    """The numbers of `tokens(text)`, each as often as it stands there, in no order that means something."""
    pieces = cut(fold(text))
    words = [one for one in pieces if one < FIRST_CJK or len(one) == 1]
    known = np.fromiter(chain.from_iterable(map(_words.__getitem__, words)), np.uint64)
    if len(words) == len(pieces):
        return known
    runs = [one for one in pieces if one >= FIRST_CJK and len(one) > 1]
    return np.concatenate([known, *_of_runs(runs)])


@contextmanager
def terms_ahead(texts: Iterable[str]) -> Iterator[None]:
    """Make the terms of texts now: what `terms_of` is asked for inside, perhaps while others wait, is there."""
    before = _ahead.set({text: terms_in(text) for text in texts})
    try:
        yield
    finally:
        _ahead.reset(before)


def terms_of(text: str) -> Terms:
    """As `terms_in`, out of what `terms_ahead` has made where it is there."""
    made = _ahead.get().get(text)
    return terms_in(text) if made is None else made


def _of_runs(runs: list[str]) -> tuple[Terms, Terms]:
    """The numbers of single characters and of pairs in runs of a script that is written without spaces."""
    joined = " ".join(runs)
    if max(joined) > LAST_SHORT:
        return numbers_of(chain.from_iterable(map(characters_and_pairs, runs))), np.zeros(0, np.uint64)
    numbers = _three_bytes().take(np.frombuffer(joined.encode("utf-16-le"), "<u2"))
    held = numbers != 0
    pairs = numbers[1:] << np.uint64(24)
    pairs |= numbers[:-1]
    mix = np.uint64(MIX)
    return numbers[held] * mix, pairs[held[1:] & held[:-1]] * mix


@cache
def _three_bytes() -> Terms:
    """What each character is in UTF-8, its first byte lowest: 0 for those that do not take three, as a space."""
    codes = np.arange(1 << 16, dtype=np.uint64)
    found: Terms = (0x8080E0 | codes >> 12 | (codes >> 6 & 0x3F) << 8 | (codes & 0x3F) << 16).astype(np.uint64)
    found[:0x800] = 0
    return found
