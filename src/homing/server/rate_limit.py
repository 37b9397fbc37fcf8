"""Requests a second for each caller, over all servers and workers that have a database in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from homing.database import Database, Step, Transaction
from homing.errors import TooManyRequests

COMPONENT = "rates"
STEPS: tuple[Step, ...] = (
    "CREATE TABLE rates(caller TEXT NOT NULL PRIMARY KEY, tokens FLOAT64 NOT NULL, at FLOAT64 NOT NULL)",
)
SWEEP = 1_000
"""Requests after which callers are forgotten whose buckets are full again."""


class RateLimit:
    """`rate` requests a second for each caller, after `burst` at once, whichever process they ask. Costs a commit each.

    Safe to call from several threads. The clock is the database's, unless one is given that all processes share.
    """

    def __init__(
        self, database: Database, rate: float, burst: int, *, clock: Callable[[], float] | None = None
    ) -> None:
        database.migrate(COMPONENT, STEPS)
        self._database = database
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._taken = 0

    def take(self, caller: str) -> None:
        """Counts a request. Raises TooManyRequests with the seconds until the next one is served."""
        self._taken += 1
        left = self._database.write(partial(self._take, caller=caller), scope=f"rate of {caller}", awaited=False)
        if left < 0:
            wait = -left / self._rate
            raise TooManyRequests(
                f"at most {self._rate:g} requests a second are served; come back in {wait:.2g} s", retry_after=wait
            )

    def _take(self, transaction: Transaction, caller: str) -> float:
        """Take a token; returns how many are left, as a negative number what is lacking for one."""
        now = self._clock() if self._clock else transaction.now()
        found = transaction.rows("SELECT tokens, at FROM rates WHERE caller = $1", caller)
        tokens, at = (float(one) for one in found[0]) if found else (self._burst, now)
        # A clock may have been set back meanwhile.
        left = min(self._burst, tokens + max(0.0, now - at) * self._rate) - 1
        transaction.rows(
            "INSERT INTO rates(caller, tokens, at) VALUES ($1, $2, $3) "
            "ON CONFLICT(caller) DO UPDATE SET tokens = excluded.tokens, at = excluded.at",
            *(caller, left if left >= 0 else left + 1, now),
        )
        if self._taken % SWEEP == 0:
            transaction.rows("DELETE FROM rates WHERE at < $1", now - self._burst / self._rate)
        return left
