"""A provider for tests: no model, no network, and vectors that rank sensibly."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from homing.embedders.provider import Kind, checked_texts
from homing.errors import InvalidArgument
from homing.text.stopwords import CHINESE, ENGLISH
from homing.text.tokens import tokens
from homing.vectors import Matrix, Scale, Vector, normalise


class FakeEmbedder:
    """Embeds a text as the sum of its words, each a fixed pseudo-random direction.

    Texts that share words, English or Chinese, are nearer than texts that do not, and the more so the more they share;
    two texts without a common word lie about at a right angle. The same text gives the same row on every machine.

    Tests may set `fail_with` to have every call raise it, and `delay` to have every call take that many seconds;
    `calls` counts the calls of `embed` and `texts` lists what they were given, failing ones included.
    """

    def __init__(
        self,
        dimensions: int = 64,
        *,
        model: str = "words",
        max_characters: int = 10_000,
        scale: Scale | None = None,
        fail_with: BaseException | None = None,
        delay: float = 0.0,
    ) -> None:
        if dimensions < 1:
            raise InvalidArgument(f"a vector has at least one dimension; got dimensions={dimensions}")
        self.id = f"fake/{model}@{dimensions}"
        self.dimensions = dimensions
        self.scale = scale
        self.max_characters = max_characters
        self.fail_with = fail_with
        self.delay = delay
        self.calls = 0
        self.texts: list[str] = []
        self._counting = threading.Lock()

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text; `kind` makes no difference."""
        texts = checked_texts(texts)
        with self._counting:
            self.calls += 1
            self.texts += texts
        if self.delay:
            time.sleep(self.delay)
        if self.fail_with is not None:
            raise self.fail_with
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return normalise(np.stack([self._row(text[: self.max_characters]) for text in texts]))

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """Whether a text is longer than `max_characters`."""
        return [len(text) > self.max_characters for text in texts]

    def _row(self, text: str) -> Vector:
        words = Counter(tokens(text))
        telling = {word: count for word, count in words.items() if word not in CHINESE and word not in ENGLISH}
        # What has no words (nothing at all, or punctuation) still has a direction: that of the text itself.
        counts = telling or words or {text: 1}
        row = np.zeros(self.dimensions, dtype=np.float64)
        for word, count in counts.items():
            row += _weight(word) * math.sqrt(count) * _direction(word, self.dimensions)
        return row.astype(np.float32)


def _weight(word: str) -> float:
    # A single Chinese character says less than the pair it is part of.
    return 0.3 if len(word) == 1 and not word.isascii() else 1.0


@lru_cache(maxsize=50_000)
def _direction(word: str, dimensions: int) -> Vector:
    stream = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest((dimensions + 7) // 8)
    signs = np.unpackbits(np.frombuffer(stream, dtype=np.uint8))[:dimensions]
    direction: Vector = signs.astype(np.float32) * 2 - 1
    return direction
