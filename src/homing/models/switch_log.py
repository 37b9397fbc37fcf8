"""The way back: which model was the default before the latest switch."""

from __future__ import annotations

from homing.database import Database


class SwitchLog:
    """The one row about the latest switch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def previous(self) -> int | None:
        """The id of the model before the latest switch; None where there never was one."""
        found = self._database.read(lambda transaction: transaction.rows("SELECT previous FROM model_switch"))
        return None if not found else int(found[0][0])

    def remember(self, previous: int) -> None:
        """A switch was begun; this model was the default before it."""
        self._database.write(
            lambda transaction: transaction.rows(
                "INSERT INTO model_switch(one, previous) VALUES (1, $1) "
                "ON CONFLICT(one) DO UPDATE SET previous = excluded.previous",
                previous,
            ),
            "models",
        )
