"""The seam to whatever keeps rows: transactions, as functions that may have to run more than once.

SQL is written once, in what SQLite and PostgreSQL both understand: placeholders `$1`, `$2` …, RETURNING, ON CONFLICT
with a target, `= ANY($1)` for a list of values. Tables are declared with five type words of our own, which each driver
translates: TEXT, INT64, FLOAT64, BYTES, and IDENTITY for a number that the database gives and never gives again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

Row = tuple[Any, ...]
T = TypeVar("T")


class Transaction(Protocol):
    """Statements that see one state of the database, and happen together or not at all."""

    @property
    def connection(self) -> Any:
        """The driver's own connection, for a store that lives in the same database."""

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """What a statement answers; nothing for one that answers nothing."""

    def each(self, sql: str, many: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each set of values."""

    @property
    def skip_locked(self) -> str:
        """What to end a SELECT with that takes rows for itself and passes over those that others are taking: nothing
        where a transaction that writes has the database alone."""

    def notify(self) -> None:
        """Let whoever `listen`s to the database know, once this is committed."""

    def now(self) -> float:
        """Seconds since 1970 by the clock of the database: the one clock that all who write to it share."""


Work = Callable[[Transaction], T]
"""What is done inside a transaction. It may be run more than once, so it must change nothing outside."""

Step = str | Callable[[Transaction], None]
"""What brings tables from one version to the next: statements, or a function."""


@runtime_checkable
class Database(Protocol):
    """Keeps the rows of every capability, beside the records of the store that lives in it.

    Safe to call from several threads, and from several processes. A `write` that returns is durable; one that raises
    changed nothing, or says that the outcome is unknown. Raises StoreError, and whatever the work itself raises.
    """

    @property
    def read_only(self) -> bool:
        """Whether `write` is refused."""

    @property
    def is_remote(self) -> bool:
        """Whether a call may wait for another machine or process to answer."""

    def read(self, work: Work[T], *, fresh: bool = False) -> T:
        """What the work answers, from one state of the database.

        What others wrote may be seen late where a replica answers; with `fresh` none does while there is another way.
        """

    def write(self, work: Work[T], scope: str = "", *, awaited: bool = True) -> T:
        """What the work answers, committed.

        `scope` names what is changed: of several writers to one scope, each sees everything that those before it wrote.
        Reads that follow see it too. Where nobody waits for that, as with a sign of life, without `awaited` a replica
        may go on answering them that has not seen it yet.
        """

    def migrate(self, component: str, steps: Sequence[Step]) -> None:
        """Bring the tables of a component up to date, one process at a time. Steps are only ever added."""

    def applied(self, component: str) -> int:
        """How many steps of a component were applied; 0 where it has no tables. Asking makes none."""

    def version(self) -> int:
        """A number that differs from the one before if anything was committed in between, by whomever."""

    def listen(self, heard: Callable[[], None]) -> float:
        """Have `heard` called, in any thread, when a transaction was committed that said `notify`, by whomever.

        Returns the seconds after which to look all the same: few where the database cannot tell, or where looking at
        its `version` costs nothing. Asking again is fine.
        """

    def close(self) -> None:
        """Let go of it. Closing twice is fine."""


@runtime_checkable
class MultiUserDatabase(Protocol):
    """A database that keeps the rows of its users apart."""

    def for_user(self, user: str) -> Database:
        """The database as one user sees it."""


def entered(database: Database, user: str) -> Database:
    """The database as a user sees it, where it keeps users apart; an empty name is who runs it."""
    return database.for_user(user) if user and isinstance(database, MultiUserDatabase) else database
