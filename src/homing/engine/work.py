"""What waits to be embedded: rows with keys and a priority, never with texts.

They are written in the transaction of the text they are about. Several processes share them: a worker claims some for a
while (a lease); when it dies, its claims are free again. Each row has a ticket of its own, and only the holder of that
ticket takes it off: what was asked for again while it was being worked on stays.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from homing.database import Database, Row, Transaction
from homing.engine.presence import gone
from homing.engine.processes import PROCESS, this_process
from homing.engine.work_state import FAR, WorkState

# `model` is empty for the model that serves the collection. `since` is when a row was first asked for, `queued` when it
# was last; `process` is who asked. `user_name` is whose texts these are, and `work_users` are all who ever came: a
# store that keeps users apart names none of them. `processes` are the servers and workers (presence.py).
STEPS = (
    """
    CREATE TABLE work(
        user_name TEXT NOT NULL, collection TEXT NOT NULL, id TEXT NOT NULL, model TEXT NOT NULL,
        ticket INT64 NOT NULL, priority INT64 NOT NULL, size INT64 NOT NULL, process TEXT NOT NULL,
        since FLOAT64 NOT NULL, queued FLOAT64 NOT NULL, due FLOAT64 NOT NULL,
        attempts INT64 NOT NULL, owner TEXT NOT NULL, leased FLOAT64 NOT NULL, error TEXT NOT NULL,
        dead INT64 NOT NULL, died FLOAT64 NOT NULL, PRIMARY KEY(user_name, collection, id, model));
    CREATE INDEX work_by_order ON work(user_name, dead, priority, queued DESC, id);
    CREATE INDEX work_by_owner ON work(owner, leased) WHERE owner <> '';
    CREATE TABLE wanted(
        user_name TEXT NOT NULL, collection TEXT NOT NULL, model TEXT NOT NULL, listed INT64 NOT NULL,
        started FLOAT64 NOT NULL, PRIMARY KEY(user_name, collection));
    CREATE TABLE work_users(user_name TEXT PRIMARY KEY);
    """,
    """
    CREATE TABLE processes(
        name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, host TEXT NOT NULL, unset TEXT NOT NULL,
        seen FLOAT64 NOT NULL);
    """,
)
INTERACTIVE, IMPORT, CHANGE = 0, 1, 2
"""Priorities: what somebody waits for, what comes in bulk, and vectors of another model. The lowest is first."""
LEASE = 600.0
"""Seconds that a worker may take for a batch before another one takes it over."""
MAX_HOLD = 60.0
"""Seconds that a row is held back at most, however often it is asked for again."""
_HELD = "user_name = $1 AND collection = $2 AND id = $3 AND model = $4 AND ticket = $5"


@dataclass(frozen=True, slots=True)
class Item:
    """A row that this worker holds until its lease runs out."""

    collection: str
    id: str
    model: str
    ticket: int
    attempts: int


class Work(WorkState):
    """The rows of one user. Methods that take a transaction join the caller's; the others are one of their own."""

    def __init__(self, database: Database, *, user: str = "", lease: float = LEASE) -> None:
        super().__init__(database, user)
        self._lease = lease
        self._owner = f"{this_process()}:{secrets.token_hex(4)}"
        database.migrate("work", STEPS)

    def add(
        self,
        transaction: Transaction,
        collection: str,
        sizes: Mapping[str, int],
        *,
        model: str = "",
        priority: int = INTERACTIVE,
        settle: float = 0.0,
    ) -> None:
        """Ask for vectors of texts, given their sizes by id, after `settle` seconds without a change.

        Nothing rests for more than `MAX_HOLD` seconds after it was first asked for.
        """
        now = transaction.now()
        transaction.each(
            "INSERT INTO work(user_name, collection, id, model, ticket, priority, size, process, since, queued, due, "
            "attempts, owner, leased, error, dead, died) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, 0, '', 0, '', 0, 0) "
            "ON CONFLICT(user_name, collection, id, model) DO UPDATE SET ticket = excluded.ticket, "
            "priority = excluded.priority, size = excluded.size, process = excluded.process, queued = excluded.queued, "
            "due = CASE WHEN excluded.due < work.since + $11 THEN excluded.due ELSE work.since + $11 END, "
            "since = CASE WHEN work.dead = 1 THEN excluded.since ELSE work.since END, "
            "attempts = 0, error = '', dead = 0",
            (
                (self._user, collection, one, model, _ticket(), priority, size, PROCESS, now, now + settle, MAX_HOLD)
                for one, size in sorted(sizes.items())
            ),
        )
        if sizes:
            transaction.notify()

    def register(self, transaction: Transaction) -> None:
        """Remember that this user has texts, so that whoever changes the model, or has time to embed, finds them."""
        if self._user:
            transaction.rows(
                "INSERT INTO work_users(user_name) VALUES ($1) ON CONFLICT(user_name) DO NOTHING", self._user
            )

    def remove(self, transaction: Transaction, collection: str, ids: Sequence[str]) -> None:
        """Forget what was asked for texts that are gone."""
        transaction.rows(
            "DELETE FROM work WHERE user_name = $1 AND collection = $2 AND id = ANY($3)",
            *(self._user, collection, list(ids)),
        )

    def remove_all(self, transaction: Transaction, collection: str) -> None:
        """Forget everything about a collection."""
        for table in ("work", "wanted"):
            transaction.rows(f"DELETE FROM {table} WHERE user_name = $1 AND collection = $2", self._user, collection)

    def claim(
        self, count: int, size: int, *, early: bool = False, mine: bool = False, collections: Sequence[str] = ()
    ) -> list[Item]:
        """Rows that nobody holds, the most urgent first and of these the newest: at most `count`, about `size` bytes.

        With `early` also what still rests because it was just written; with `mine` only what this process asked for;
        with `collections` only what is theirs. Several who claim at once get different rows, and none waits.
        """

        def claimable(transaction: Transaction, now: float, most: int, locking: str = "") -> list[Row]:
            return transaction.rows(
                "SELECT collection, id, model, ticket, attempts, size FROM work WHERE user_name = $1 "
                f"AND dead = 0 AND (owner = '' OR leased <= $2 OR leased >= $2 + {FAR} OR owner = ANY($3)) "
                f"AND (due <= $2 OR due >= $2 + {FAR} OR ($4 = 1 AND error = '')) AND ($5 = '' OR process = $5) "
                "AND ($6 = 0 OR collection = ANY($7)) "
                f"ORDER BY priority, queued DESC, id LIMIT $8 {locking}",
                *(self._user, now, self._dead(transaction, now), int(early), PROCESS if mine else ""),
                *(len(collections), list(collections), most),
            )

        def work(transaction: Transaction) -> list[Item]:
            items, total, now = list[Item](), 0, transaction.now()
            for collection, key, model, ticket, attempts, length in claimable(
                transaction, now, count, transaction.skip_locked
            ):
                if items and total + length > size:
                    break
                items.append(Item(collection, key, model, ticket, attempts))
                total += length
            transaction.each(
                "UPDATE work SET owner = $1, leased = $2 "
                "WHERE user_name = $3 AND collection = $4 AND id = $5 AND model = $6",
                [(self._owner, now + self._lease, self._user, one.collection, one.id, one.model) for one in items],
            )
            return sorted(items, key=_order)

        # Mostly there is nothing: nobody who writes has to wait for that.
        if not self._database.read(lambda transaction: claimable(transaction, transaction.now(), 1)):
            return []
        return self._database.write(work, awaited=False)

    def done(self, items: Sequence[Item]) -> None:
        """These have their vectors. What was asked for again meanwhile stays, free to be claimed."""

        def work(transaction: Transaction) -> None:
            transaction.each(f"DELETE FROM work WHERE {_HELD}", [self._held(one) for one in items])
            self._free(transaction, items)

        self._database.write(work)

    def postpone(self, items: Sequence[Item], error: str, *, seconds: float, counts: bool) -> None:
        """These failed for now and are due again later; `counts` is whether the failure is held against them."""

        def work(transaction: Transaction) -> None:
            due = transaction.now() + seconds
            transaction.each(
                f"UPDATE work SET due = $6, error = $7, attempts = attempts + $8 WHERE {_HELD}",
                [(*self._held(one), due, error, int(counts)) for one in items],
            )
            self._free(transaction, items)

        self._database.write(work)

    def dead_letter(self, item: Item, error: str) -> None:
        """This one will not be tried again by itself."""

        def work(transaction: Transaction) -> None:
            transaction.rows(
                f"UPDATE work SET dead = 1, died = $6, error = $7, attempts = attempts + 1 WHERE {_HELD}",
                *(*self._held(item), transaction.now(), error),
            )
            self._free(transaction, [item])

        self._database.write(work)

    def release(self, items: Sequence[Item]) -> None:
        """These are free to be claimed by anybody."""
        self._database.write(lambda transaction: self._free(transaction, items))

    def release_all(self) -> None:
        """Everything that this worker holds is free to be claimed by anybody."""
        self._database.write(
            lambda transaction: transaction.rows(
                "UPDATE work SET owner = '', leased = 0 WHERE owner = $1", self._owner
            ),
        )

    def flush(self) -> None:
        """Make due now what was postponed; what rests can be claimed `early`."""
        self._database.write(
            lambda transaction: transaction.rows(
                "UPDATE work SET due = 0 WHERE user_name = $1 AND dead = 0 AND error <> '' AND due > $2",
                self._user,
                transaction.now(),
            ),
        )

    def retry_dead(self) -> int:
        """Ask for every dead letter again; returns how many there were."""
        revived = self._database.write(
            lambda transaction: transaction.rows(
                "UPDATE work SET dead = 0, died = 0, attempts = 0, error = '', due = 0 "
                "WHERE user_name = $1 AND dead = 1 RETURNING id",
                self._user,
            ),
        )
        return len(revived)

    def _held(self, item: Item) -> tuple[str, str, str, str, int]:
        return self._user, item.collection, item.id, item.model, item.ticket

    def _free(self, transaction: Transaction, items: Iterable[Item]) -> None:
        transaction.each(
            "UPDATE work SET owner = '', leased = 0 "
            "WHERE user_name = $1 AND collection = $2 AND id = $3 AND model = $4 AND owner = $5",
            [(self._user, one.collection, one.id, one.model, self._owner) for one in items],
        )

    def _dead(self, transaction: Transaction, now: float) -> list[str]:
        """The workers that hold something and have died."""
        owners = transaction.rows("SELECT DISTINCT owner FROM work WHERE owner <> '' AND leased > $1", now)
        return sorted(gone(transaction, (owner for (owner,) in owners), now, local=self._local))


def _order(item: Item) -> tuple[str, str, str]:
    """The order in which everybody takes rows, so that two who take the same ones never wait for each other."""
    return item.collection, item.model, item.id


def _ticket() -> int:
    return secrets.randbits(62)
