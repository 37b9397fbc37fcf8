"""What waits to be embedded, as others see it: counts, states and errors, read and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from homing.database import Database, Row, Transaction
from homing.database.database import MultiUserDatabase
from homing.engine.processes import PROCESS, is_gone

FAR = 7_200
"""Seconds ahead beyond which a time was written by a clock that has been set back since: nothing waits for it."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A text that could not be embedded; it is found by words and waits for a person."""

    collection: str
    id: str
    error: str
    attempts: int
    died: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much waits, since when (seconds), how much of it failed before, how much was given up, and the last error."""

    waiting: int = 0
    oldest: float = 0.0
    failing: int = 0
    dead: int = 0
    error: str = ""


class WorkState:
    """How things stand with the rows of work of one user; see `homing.engine.work`."""

    def __init__(self, database: Database, user: str) -> None:
        self._database = database
        self._user = user
        self._local = not isinstance(database, MultiUserDatabase)

    def users(self) -> list[str]:
        """Every user who has written texts through an engine on this database, by name."""
        found = self._database.read(lambda own: own.rows("SELECT user_name FROM work_users ORDER BY user_name"))
        return [user for (user,) in found]

    def users_waiting(self) -> list[str]:
        """The other users who have something that is due."""
        found = self._rows_now("SELECT DISTINCT user_name FROM work WHERE user_name <> $1 AND dead = 0 AND due <= $2")
        return [user for (user,) in found]

    def dead_letters(self) -> list[DeadLetter]:
        """What was given up, the latest first."""
        found = self._rows(
            "SELECT collection, id, error, attempts, died FROM work WHERE user_name = $1 AND dead = 1 "
            "ORDER BY died DESC, id"
        )
        return [DeadLetter(*row) for row in found]

    def waiting(self, collection: str = "", *, model: str | None = None, mine: bool = False) -> int:
        """How many rows wait or are being worked on, dead letters aside: all, or those of a collection or a model."""
        [(count,)] = self._rows(
            "SELECT count(*) FROM work WHERE user_name = $1 AND dead = 0 AND ($2 = '' OR collection = $2) "
            "AND ($3 = 1 OR model = $4) AND ($5 = '' OR process = $5)",
            *(collection, int(model is None), model or "", PROCESS if mine else ""),
        )
        return int(count)

    def waiting_by_prefix(self, collection: str, length: int) -> dict[str, int]:
        """How many texts wait for a vector of the model that serves their collection, dead letters aside, by the first
        `length` characters of their ids."""
        found = self._rows(
            "SELECT substr(id, 1, $3), count(*) FROM work WHERE user_name = $1 AND collection = $2 AND model = '' "
            "AND dead = 0 GROUP BY 1",
            *(collection, length),
        )
        return {prefix: int(count) for prefix, count in found}

    def lacking(self, transaction: Transaction, collection: str, prefix: str) -> dict[str, bool]:
        """Whose vector of the model that serves the collection is missing, of the ids that begin so, and whether it is
        still to come: False for a dead letter."""
        found = transaction.rows(
            "SELECT id, dead FROM work WHERE user_name = $1 AND collection = $2 AND id >= $3 AND id < $4 "
            "AND model = ''",
            *(self._user, collection, prefix, prefix + "\U0010ffff"),
        )
        return {one: not dead for one, dead in found}

    def state_of(self, collection: str, model: str) -> tuple[int, bool, str]:
        """How many vectors of a model a collection waits for, whether somebody is at it, and the last error."""
        [(left, held, error)] = self._rows_now(
            f"SELECT count(*), coalesce(max(CASE WHEN leased > $2 AND leased < $2 + {FAR} THEN 1 ELSE 0 END), 0), "
            "coalesce(max(error), '') FROM work WHERE user_name = $1 AND collection = $3 AND model = $4 AND dead = 0",
            *(collection, model),
        )
        return int(left), bool(held), error

    def held(self) -> bool:
        """Whether some rows are being worked on, by anybody who is not certainly gone."""
        owners = self._rows_now(
            "SELECT DISTINCT owner FROM work WHERE user_name = $1 AND owner <> '' "
            f"AND leased > $2 AND leased < $2 + {FAR}"
        )
        return not all(is_gone(owner, local=self._local) for (owner,) in owners)

    def has(self, count: int, *, resting: bool = False) -> bool:
        """Whether at least so many rows wait; with `resting`, that are not due yet because they were just written."""
        found = self._rows_now(
            "SELECT 1 FROM work WHERE user_name = $1 AND dead = 0 "
            f"AND ((due > $2 AND due < $2 + {FAR} AND error = '' AND owner = '') OR $3 = 0) LIMIT $4",
            *(int(resting), count),
        )
        return len(found) >= count

    def untried(self, collection: str, ids: Sequence[str]) -> int:
        """How many of these wait for a vector of the model that serves the collection, and never failed."""
        [(count,)] = self._rows(
            "SELECT count(*) FROM work WHERE user_name = $1 AND collection = $2 AND id = ANY($3) AND model = '' "
            "AND dead = 0 AND error = ''",
            *(collection, list(ids)),
        )
        return int(count)

    def unattended(self, collection: str, ids: Sequence[str]) -> list[str]:
        """Which of these nobody will embed in a moment: nobody asked for them, or they failed. Dead letters aside."""
        found = self._rows(
            "SELECT id, dead, error FROM work WHERE user_name = $1 AND collection = $2 AND id = ANY($3) AND model = ''",
            *(collection, list(ids)),
        )
        attended = {one for one, dead, error in found if dead or not error}
        return [one for one in ids if one not in attended]

    def next_due(self, *, everybody: bool = False) -> float | None:
        """In how many seconds something becomes due, of this user or of everybody; None where nothing waits."""

        def work(transaction: Transaction) -> float | None:
            [(due,)] = transaction.rows(
                "SELECT min(CASE WHEN owner = '' THEN due ELSE leased END) FROM work "
                "WHERE (user_name = $1 OR $2 = 1) AND dead = 0",
                *(self._user, int(everybody)),
            )
            ahead = 0.0 if due is None else float(due - transaction.now())
            return None if due is None else ahead if 0.0 < ahead < FAR else 0.0

        return self._database.read(work)

    def backlog(self, prefix: str = "") -> Backlog:
        """How things stand with the collections whose names begin so."""

        def work(transaction: Transaction) -> Backlog:
            [(waiting, oldest, failing, dead, error)] = transaction.rows(
                "SELECT coalesce(sum(1 - dead), 0), min(CASE WHEN dead = 0 THEN since END), "
                "coalesce(sum(CASE WHEN dead = 0 AND error <> '' THEN 1 ELSE 0 END), 0), coalesce(sum(dead), 0), "
                "coalesce(max(error), '') FROM work WHERE user_name = $1 AND collection >= $2 AND collection < $3",
                *(self._user, prefix, prefix + "\U0010ffff"),
            )
            age = 0.0 if oldest is None else max(0.0, transaction.now() - oldest)
            return Backlog(int(waiting), age, int(failing), int(dead), error)

        return self._database.read(work)

    def _rows(self, statement: str, *values: Any) -> list[Row]:
        """What a statement answers; `$1` is the user."""
        return self._database.read(lambda transaction: transaction.rows(statement, self._user, *values))

    def _rows_now(self, statement: str, *values: Any) -> list[Row]:
        """What a statement answers; `$1` is the user, `$2` the time."""
        return self._database.read(lambda own: own.rows(statement, self._user, own.now(), *values))
