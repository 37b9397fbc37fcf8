"""Words as numbers: what the keyword index holds.

A word is named by 64 bits of its hash, mixed with the number of its collection. Sorted, they are found by bisection
inside the row, and an index entry leads to one collection only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from homing.text.tokens import tokens

Slots = npt.NDArray[np.int64]
MOST = 32_767
"""The highest count that is kept; relevance has long stopped growing by then."""


@lru_cache(maxsize=1 << 18)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big", signed=True)


@lru_cache(maxsize=1024)
def _mask(collection: int) -> np.int64:
    return np.int64(_hash(f"collection {collection}"))


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, in no collection yet: how many it has, which ones, and how often each."""

    length: int
    numbers: Slots
    counts: Slots

    def placed(self, collection: int) -> tuple[Slots, Slots]:
        """Their numbers in a collection, sorted, and the counts in the same order."""
        numbers = self.numbers ^ _mask(collection)
        order = np.argsort(numbers)
        return numbers[order], self.counts[order]


def words(text: str) -> Words:
    """The words of a text."""
    found = Counter(tokens(text))
    counts = np.fromiter(found.values(), np.int64, len(found))
    return Words(int(counts.sum()), _numbers(found), np.minimum(counts, MOST))


def slots(collection: int, terms: Sequence[str]) -> Slots:
    """The numbers of words in a collection, in the order given."""
    return _numbers(terms) ^ _mask(collection)


def _numbers(terms: Collection[str]) -> Slots:
    return np.fromiter((_hash(term) for term in terms), np.int64, len(terms))
