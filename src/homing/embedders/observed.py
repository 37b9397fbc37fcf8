"""Counts what a model was asked, how long it took and how it failed; for whoever watches."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.embedders.wrapper import Wrapper
from homing.errors import HomingError
from homing.vectors import Matrix

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
"""Upper ends, in seconds, of the classes that calls are counted in; what takes longer is in the last one beyond."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen until now. `last_failure` is the code of the latest call, where that failed."""

    calls: int
    texts: int
    seconds: float
    by_bound: tuple[int, ...]
    failures: Mapping[str, int]
    last_failure: str | None


class Observed(Wrapper):
    """The same provider, under observation. Safe to call from several threads; costs a microsecond."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
        self._lock = threading.Lock()
        self._calls = self._texts = 0
        self._seconds = 0.0
        self._by_bound = [0] * (len(BOUNDS) + 1)
        self._failures: Counter[str] = Counter()
        self._last_failure: str | None = None

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """What the wrapped provider gives."""
        started = time.perf_counter()
        code: str | None = "INTERNAL_ERROR"
        try:
            rows = super().embed(texts, kind=kind)
            code = None
            return rows
        except HomingError as error:
            code = error.code
            raise
        finally:
            self._count(len(texts), time.perf_counter() - started, code)

    @property
    def seen(self) -> Observation:
        """What was seen until now."""
        with self._lock:
            return Observation(
                self._calls,
                self._texts,
                self._seconds,
                tuple(self._by_bound),
                dict(self._failures),
                self._last_failure,
            )

    def _count(self, texts: int, seconds: float, code: str | None) -> None:
        with self._lock:
            self._calls += 1
            self._texts += texts
            self._seconds += seconds
            self._by_bound[bisect_left(BOUNDS, seconds)] += 1
            self._last_failure = code
            if code is not None:
                self._failures[code] += 1
