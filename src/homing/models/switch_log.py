"""What is known about the latest switch, for every process that asks: target, progress, sign of life, way back."""

from __future__ import annotations

from dataclasses import dataclass

from homing.database import Database, Transaction
from homing.models.schema import COMPONENT

SIGN_OF_LIFE = 1.0
"""Seconds between two signs of life of a running switch."""
TAKEN_FOR_DEAD = 8.0
"""Seconds without one after which it is not running any more."""


@dataclass(frozen=True, slots=True)
class SwitchState:
    """The latest switch, when it was read. `running` is whether somebody was working on it.

    `previous` is the id of the model before it; `error` says why it stopped, if it did.
    """

    target: str
    previous: int | None
    done: int
    total: int
    per_second: float
    updated: float
    error: str
    running: bool

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None where nothing is known yet."""
        return (self.total - self.done) / self.per_second if self.per_second > 0 else None


class SwitchLog:
    """The one row about the latest switch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self) -> SwitchState | None:
        """The latest switch; None where there never was one."""
        return self._database.read(_state)

    def begin(self, target: str, previous: int | None) -> None:
        """A switch to this model is wanted; nobody works on it yet."""

        def work(tx: Transaction) -> None:
            tx.rows(
                "INSERT INTO model_switch(one, target, previous, done, total, per_second, updated, error) "
                "VALUES (1, $1, $2, 0, 0, 0, 0, '') ON CONFLICT(one) DO UPDATE SET target = excluded.target, "
                "previous = excluded.previous, done = 0, total = 0, per_second = 0, updated = 0, error = ''",
                *(target, previous),
            )

        self._database.write(work, scope=COMPONENT)

    def progress(self, target: str, done: int, total: int, per_second: float) -> None:
        """A sign of life."""

        def work(tx: Transaction) -> None:
            tx.rows(
                "INSERT INTO model_switch(one, target, previous, done, total, per_second, updated, error) "
                "VALUES (1, $1, NULL, $2, $3, $4, $5, '') ON CONFLICT(one) DO UPDATE SET target = excluded.target, "
                "done = excluded.done, total = excluded.total, per_second = excluded.per_second, "
                "updated = excluded.updated, error = ''",
                *(target, done, total, per_second, tx.now()),
            )

        self._database.write(work, scope=COMPONENT)

    def end(self, error: str = "") -> None:
        """Nobody works on it any more."""
        self._database.write(
            lambda tx: tx.rows("UPDATE model_switch SET updated = 0, error = $1", error), scope=COMPONENT
        )


def _state(tx: Transaction) -> SwitchState | None:
    found = tx.rows("SELECT target, previous, done, total, per_second, updated, error FROM model_switch")
    if not found:
        return None
    target, previous, done, total, per_second, updated, error = found[0]
    running = not error and tx.now() - updated < TAKEN_FOR_DEAD
    return SwitchState(target, previous, done, total, per_second, updated, error, running)
