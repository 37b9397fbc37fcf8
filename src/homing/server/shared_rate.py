"""Requests a second that hold across all servers on one database."""

from __future__ import annotations

from homing.database import Database, Row, Step, Transaction
from homing.server.limits import refused

COMPONENT = "rates"
STEPS: tuple[Step, ...] = (
    "CREATE TABLE rates(caller TEXT NOT NULL PRIMARY KEY, tokens FLOAT64 NOT NULL, at FLOAT64 NOT NULL)",
)
SWEEP = 1_000
"""Requests after which callers are forgotten whose buckets are full again."""
# What is in a caller's bucket now: what was left, and what has come since; never more than the burst.
_REFILLED = "rates.tokens + (excluded.at - rates.at) * $4"
_NOW = f"CASE WHEN {_REFILLED} > $5 THEN $5 ELSE {_REFILLED} END"


class SharedRateLimit:
    """`rate` requests a second for each caller, after `burst` at once, whichever servers they ask. Costs a commit each.

    Safe to call from several threads. The clock is the database's.
    """

    def __init__(self, database: Database, rate: float, burst: int) -> None:
        database.migrate(COMPONENT, STEPS)
        self._database = database
        self._rate = rate
        self._burst = float(burst)
        self._taken = 0

    def take(self, caller: str) -> None:
        """Counts a request. Raises TooManyRequests with the seconds until the next one is served."""
        self._taken += 1
        if self._taken % SWEEP == 0:
            self._database.write(self._sweep)
        wait = self._database.write(lambda own: self._take(own, caller))
        if wait is not None:
            raise refused(self._rate, wait)

    def _take(self, transaction: Transaction, caller: str) -> float | None:
        now = transaction.now()
        served = transaction.rows(
            "INSERT INTO rates(caller, tokens, at) VALUES ($1, $2, $3) ON CONFLICT(caller) DO UPDATE SET "
            f"tokens = {_NOW} - 1, at = excluded.at WHERE {_NOW} >= 1 RETURNING tokens",
            *(caller, self._burst - 1, now, self._rate, self._burst),
        )
        if served:
            return None
        [(left, at)] = transaction.rows("SELECT tokens, at FROM rates WHERE caller = $1", caller)
        return max(0.0, (1 - float(left)) / self._rate - (now - float(at)))

    def _sweep(self, transaction: Transaction) -> list[Row]:
        idle = transaction.now() - self._burst / self._rate
        return transaction.rows("DELETE FROM rates WHERE at < $1", idle)
