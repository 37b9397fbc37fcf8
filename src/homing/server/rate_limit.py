"""How often one caller may ask: a bucket that fills steadily, and from which each request takes one."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from homing.errors import TooManyRequests

MAX_CALLERS = 10_000


class RateLimit:
    """`rate` requests a second for each caller, after `burst` at once; 0 is no limit. For one event loop."""

    def __init__(self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Counts a request. Raises TooManyRequests with the seconds until the next one is served."""
        if not self._rate:
            return
        now = self._clock()
        left, before = self._buckets.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - before) * self._rate)
        served = left >= 1
        self._buckets[caller] = (left - 1 if served else left, now)
        self._buckets.move_to_end(caller)
        # Who was forgotten begins with a full bucket, as one that was idle for so long has anyway.
        while len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        if not served:
            wait = (1 - left) / self._rate
            raise TooManyRequests(
                f"at most {self._rate:g} requests a second are served; come back in {wait:.2g} s", retry_after=wait
            )
