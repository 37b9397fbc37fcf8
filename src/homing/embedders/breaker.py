"""A circuit breaker: who failed is left alone for a while, then tried by one call before all others return."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from homing.errors import InvalidArgument


class Breaker:
    """Says whether a call may be tried; told how every tried call ended.

    Closed, everything may. After `failures` failures in a row it is open and nothing may, for `cool_down` seconds. Then
    one call may, as a probe; its success closes the breaker, its failure opens it again for twice as long, up to
    `longest`. Safe to use from several threads.
    """

    def __init__(
        self,
        *,
        failures: int = 1,
        cool_down: float = 1.0,
        longest: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if failures < 1 or cool_down <= 0 or longest < cool_down:
            raise InvalidArgument("a breaker needs failures >= 1 and 0 < cool_down <= longest")
        self._failures = failures
        self._cool_down = cool_down
        self._longest = longest
        self._clock = clock
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._pause = cool_down
        self._open_until: float | None = None
        self._probing = False

    @property
    def retry_after(self) -> float | None:
        """Seconds until the next probe; None while closed, 0 while a probe is due or under way."""
        with self._lock:
            return None if self._open_until is None else max(0.0, self._open_until - self._clock())

    def permit(self) -> bool:
        """Whether a call may be tried now. Who gets True must report `succeeded` or `failed`."""
        with self._lock:
            if self._open_until is None:
                return True
            if self._probing or self._clock() < self._open_until:
                return False
            self._probing = True
            return True

    def succeeded(self) -> None:
        """A permitted call was answered."""
        with self._lock:
            self._failed_in_a_row = 0
            self._pause = self._cool_down
            self._open_until = None
            self._probing = False

    def failed(self, *, retry_after: float | None = None) -> None:
        """A permitted call was not answered; `retry_after` is how long the other side asked to be left alone."""
        with self._lock:
            self._failed_in_a_row += 1
            if self._probing:
                self._pause = min(2 * self._pause, self._longest)
            if self._probing or self._failed_in_a_row >= self._failures:
                self._open_until = self._clock() + max(self._pause, retry_after or 0.0)
            self._probing = False
