"""What is known about the latest switch, for every process that asks: target, progress, sign of life, way back."""

from __future__ import annotations

import time
from dataclasses import dataclass

from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.rows import rows

SIGN_OF_LIFE = 1.0
"""Seconds between two signs of life of a running switch."""
TAKEN_FOR_DEAD = 8.0
"""Seconds without one after which it is not running any more."""


@dataclass(frozen=True, slots=True)
class SwitchState:
    """The latest switch. `previous` is the id of the model before it; `error` says why it stopped, if it did."""

    target: str
    previous: int | None
    done: int
    total: int
    per_second: float
    updated: float
    error: str

    @property
    def running(self) -> bool:
        """Whether somebody is working on it."""
        return not self.error and time.time() - self.updated < TAKEN_FOR_DEAD

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None where nothing is known yet."""
        return (self.total - self.done) / self.per_second if self.per_second > 0 else None


class SwitchLog:
    """The one row about the latest switch."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def read(self) -> SwitchState | None:
        """The latest switch; None where there never was one."""
        with self._database.reading() as connection:
            found = rows(
                connection, "SELECT target, previous, done, total, per_second, updated, error FROM model_switch"
            )
        return SwitchState(*found[0]) if found else None

    def begin(self, target: str, previous: int | None) -> None:
        """A switch to this model is wanted; nobody works on it yet."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO model_switch(one, target, previous, done, total, per_second, updated, error) "
                "VALUES (1, ?, ?, 0, 0, 0, 0, '')",
                (target, previous),
            )

    def progress(self, target: str, done: int, total: int, per_second: float) -> None:
        """A sign of life."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO model_switch(one, target, previous, done, total, per_second, updated, error) "
                "VALUES (1, ?1, NULL, ?2, ?3, ?4, ?5, '') ON CONFLICT DO UPDATE SET "
                "target = ?1, done = ?2, total = ?3, per_second = ?4, updated = ?5, error = ''",
                (target, done, total, per_second, time.time()),
            )

    def end(self, error: str = "") -> None:
        """Nobody works on it any more."""
        with self._database.writing() as connection:
            connection.execute("UPDATE model_switch SET updated = 0, error = ?", (error,))
