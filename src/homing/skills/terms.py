"""Keyword evidence without a server: texts as hashed terms, and how much of a query each text contains."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from homing.text.tokens import tokens

Hashes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float32]

K1 = 1.2
B = 0.75
MOST_REPEATS = 65_535
"""Repetitions of a word in one text that are counted; more of them say nothing more."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one text: each once, as a hash, with how often it stands there."""

    hashes: Hashes
    counts: Counts


def terms_of(text: str) -> Terms:
    """The terms of a text, as the keyword index of every store knows them."""
    counted = Counter(tokens(text))
    hashes = np.fromiter((term_hash(term) for term in counted), np.uint64, len(counted))
    counts = np.minimum(np.fromiter(counted.values(), np.int64, len(counted)), MOST_REPEATS)
    return Terms(hashes, counts.astype(np.uint16))


@lru_cache(maxsize=100_000)
def term_hash(term: str) -> int:
    """A number for a term: short enough to be compared in bulk, long enough that no two terms share it."""
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True, slots=True)
class Evidence:
    """BM25 in units that mean the same for every query and corpus: how many rare words a text shares with the query.

    `asked` is how many the query has; words that no text holds are among them.
    """

    shared: Floats
    asked: float

    @property
    def coverage(self) -> Floats:
        """The share of the query that each text holds, in [0, 1)."""
        return self.shared / self.asked if self.asked else self.shared


class KeywordIndex:
    """Texts by the terms in them. Immutable; may be asked by several threads."""

    def __init__(self, texts: Sequence[Terms]) -> None:
        self.size = len(texts)
        each = np.array([len(text.hashes) for text in texts], np.int64)
        hashes = np.concatenate([text.hashes for text in texts]) if texts else np.empty(0, np.uint64)
        counts = np.concatenate([text.counts for text in texts]) if texts else np.empty(0, np.uint16)
        owners = np.repeat(np.arange(self.size, dtype=np.int32), each)
        lengths = np.bincount(owners, weights=counts, minlength=self.size).astype(np.float32)
        mean = float(lengths.mean()) if lengths.any() else 1.0
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._owners = owners[order]
        frequency = counts[order].astype(np.float32)
        # What a term is worth in a text, between 0 and 1: BM25 but for the weight of the term and a constant factor.
        self._worth = frequency / (frequency + K1 * (1 - B + B * lengths[self._owners] / mean))

    def evidence(self, terms: Sequence[str]) -> Evidence:
        """For each text how much it shares with a query."""
        shared = np.zeros(self.size, np.float32)
        asked = np.array([term_hash(term) for term in terms], np.uint64)
        starts, ends = np.searchsorted(self._hashes, asked, "left"), np.searchsorted(self._hashes, asked, "right")
        holders = ends - starts
        # A word that no text holds weighs 1, one that all of them hold next to nothing.
        most = np.log1p((self.size + 0.5) / 0.5)
        weights = (np.log1p((self.size - holders + 0.5) / (holders + 0.5)) / most).astype(np.float32)
        for start, end, weight in zip(starts.tolist(), ends.tolist(), weights.tolist(), strict=True):
            if end > start:
                shared[self._owners[start:end]] += weight * self._worth[start:end]
        return Evidence(shared, float(weights.sum()))
