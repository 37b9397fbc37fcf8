"""The durable queue: what is to be embedded, who is at it, and what could not be.

Several processes share one outbox. A worker claims items for a while (a lease); when it dies, its claims are free
again. What is asked for an id replaces what still waits for it. Each request has a ticket of its own, and only the
holder of that ticket takes it off: what was replaced while it was being worked on stays in the queue. Removals wait in
the same queue as texts, so that a removal always comes after the text that it removes.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from homing.database.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from apsw import Connection

STEPS = (
    """
    CREATE TABLE outbox(
        collection TEXT NOT NULL, id TEXT NOT NULL, ticket INTEGER NOT NULL, text TEXT,
        metadata TEXT NOT NULL, bytes INTEGER NOT NULL, queued REAL NOT NULL, due REAL NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, owner TEXT, leased REAL NOT NULL DEFAULT 0, error TEXT,
        PRIMARY KEY(collection, id)) WITHOUT ROWID;
    CREATE INDEX outbox_by_age ON outbox(queued);
    CREATE INDEX outbox_held ON outbox(owner, leased) WHERE owner IS NOT NULL;
    CREATE TABLE dead_letters(
        collection TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL, queued REAL NOT NULL,
        died REAL NOT NULL, attempts INTEGER NOT NULL, error TEXT NOT NULL,
        PRIMARY KEY(collection, id)) WITHOUT ROWID;
    """,
    # A removal has no text, and can be given up like everything else.
    """
    ALTER TABLE dead_letters RENAME TO dead_texts;
    CREATE TABLE dead_letters(
        collection TEXT NOT NULL, id TEXT NOT NULL, text TEXT, metadata TEXT NOT NULL, queued REAL NOT NULL,
        died REAL NOT NULL, attempts INTEGER NOT NULL, error TEXT NOT NULL,
        PRIMARY KEY(collection, id)) WITHOUT ROWID;
    INSERT INTO dead_letters SELECT * FROM dead_texts;
    DROP TABLE dead_texts;
    """,
)

LONGEST_HOLD = 60.0
"""Seconds that a request is held back at most, however often it is asked for again."""

FREE = "due <= :now AND (owner IS NULL OR leased <= :now OR owner NOT IN (SELECT value FROM json_each(:living)))"
"""What may be claimed: due, and held by nobody who lives."""

PROCESS = secrets.token_hex(4)
"""Tells this process from an earlier one that had its number, as happens in containers."""


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """A text to embed and keep under `(collection, id)`; None in place of a text removes what is kept there."""

    collection: str
    id: str
    text: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A request that this worker holds until its lease runs out."""

    request: EmbedRequest
    ticket: int
    attempts: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A request that failed by itself too often; it waits for a person (`homing rag queue --retry`)."""

    request: EmbedRequest
    error: str
    attempts: int
    died: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much waits, since when (seconds), how much of it failed before, and how much was given up."""

    waiting: int
    oldest: float
    failing: int
    dead: int


class Outbox:
    """The queue in a database. Every method is one short transaction, except `put`, which joins the caller's."""

    def __init__(self, database: SqliteDatabase, *, lease: float = 600.0) -> None:
        self._database = database
        self._lease = lease
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{PROCESS}:{secrets.token_hex(4)}"
        database.migrate("outbox", STEPS)

    @staticmethod
    def look(database: SqliteDatabase) -> Backlog | None:
        """How full the queue in a database is; None where there never was one. Makes no tables."""
        with database.reading() as connection:
            known = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'outbox'").get
            return _backlog(connection) if known else None

    def put(self, connection: Connection, requests: Iterable[EmbedRequest], *, hold: float = 0.0) -> None:
        """Queue requests inside a transaction of the caller: they are there if and only if it commits.

        They are due after `hold` seconds: what is asked for again and again meanwhile is embedded once. Nothing is held
        for more than `LONGEST_HOLD` seconds after it was first asked for.
        """
        now = time.time()
        due = now + hold
        rows = [
            (one.collection, one.id, _ticket(), one.text, _dump(one.metadata), len((one.text or "").encode()), now, due)
            for one in requests
        ]
        connection.executemany(
            "INSERT INTO outbox(collection, id, ticket, text, metadata, bytes, queued, due) VALUES (?,?,?,?,?,?,?,?) "
            "ON CONFLICT(collection, id) DO UPDATE SET ticket = excluded.ticket, text = excluded.text, "
            "metadata = excluded.metadata, bytes = excluded.bytes, attempts = 0, error = NULL, "
            f"due = max(min(excluded.due, queued + {LONGEST_HOLD}), excluded.queued)",
            rows,
        )
        connection.executemany("DELETE FROM dead_letters WHERE collection = ? AND id = ?", [row[:2] for row in rows])

    def claim(self, count: int, size: int) -> list[Claimed]:
        """The oldest due requests, at most `count` and about `size` bytes, that no living worker holds."""
        now = time.time()
        claimed: list[Claimed] = []
        with self._database.writing() as connection:
            total = 0
            rows: list[tuple[Any, ...]] = connection.execute(
                "SELECT collection, id, text, metadata, ticket, attempts, bytes FROM outbox "
                f"WHERE {FREE} ORDER BY queued LIMIT :count",
                {"now": now, "count": count, "living": self._living(connection, now)},
            ).fetchall()
            for collection, key, text, metadata, ticket, attempts, length in rows:
                if claimed and total + length > size:
                    break
                request = EmbedRequest(collection, key, text, json.loads(metadata))
                claimed.append(Claimed(request, ticket, attempts))
                total += length
            connection.executemany(
                "UPDATE outbox SET owner = ?, leased = ? WHERE collection = ? AND id = ?",
                [(self._owner, now + self._lease, one.request.collection, one.request.id) for one in claimed],
            )
        return claimed

    def done(self, claimed: Sequence[Claimed]) -> None:
        """These are embedded. What was replaced meanwhile stays, free to be claimed."""
        with self._database.writing() as connection:
            connection.executemany(
                "DELETE FROM outbox WHERE collection = ? AND id = ? AND ticket = ?", [_key(one) for one in claimed]
            )
            self._free(connection, claimed)

    def put_off(self, claimed: Sequence[Claimed], error: str, *, seconds: float, counts: bool) -> None:
        """These failed for now and are due again later. `counts` is whether the failure is held against them."""
        with self._database.writing() as connection:
            connection.executemany(
                "UPDATE outbox SET due = ?, error = ?, attempts = attempts + ? "
                "WHERE collection = ? AND id = ? AND ticket = ?",
                [(time.time() + seconds, error, int(counts), *_key(one)) for one in claimed],
            )
            self._free(connection, claimed)

    def give_back(self, claimed: Sequence[Claimed]) -> None:
        """These are free to be claimed by anybody."""
        with self._database.writing() as connection:
            self._free(connection, claimed)

    def bury(self, claimed: Claimed, error: str) -> None:
        """This one will not be tried again by itself."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO dead_letters SELECT collection, id, text, metadata, queued, ?, attempts + 1, ? "
                "FROM outbox WHERE collection = ? AND id = ? AND ticket = ?",
                (time.time(), error, *_key(claimed)),
            )
            connection.execute("DELETE FROM outbox WHERE collection = ? AND id = ? AND ticket = ?", _key(claimed))
            self._free(connection, [claimed])

    def dead_letters(self) -> list[DeadLetter]:
        """What was given up, latest first."""
        with self._database.reading() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(
                "SELECT collection, id, text, metadata, error, attempts, died FROM dead_letters ORDER BY died DESC"
            ).fetchall()
        return [
            DeadLetter(EmbedRequest(collection, key, text, json.loads(metadata)), error, attempts, died)
            for collection, key, text, metadata, error, attempts, died in rows
        ]

    def revive(self) -> int:
        """Queue every dead letter again; returns how many there were."""
        letters = self.dead_letters()
        with self._database.writing() as connection:
            self.put(connection, [letter.request for letter in letters])
        return len(letters)

    def hurry(self) -> None:
        """Make everything due now, also what was put off."""
        with self._database.writing() as connection:
            connection.execute("UPDATE outbox SET due = 0 WHERE due > ?", (time.time(),))

    def backlog(self) -> Backlog:
        """How full the queue is."""
        with self._database.reading() as connection:
            return _backlog(connection)

    def waiting(self) -> int:
        """How many requests there are, held or not."""
        with self._database.reading() as connection:
            count: int = connection.execute("SELECT count(*) FROM outbox").get
        return count

    def waiting_in(self, collection: str, prefix: str = "", *, removals: bool = False) -> int:
        """How many texts of a collection, whose ids begin so, have no vector yet; with `removals`, all that waits."""
        within = "collection = ?1 AND id >= ?2 AND id < ?3"
        bindings = (collection, prefix, prefix + "\U0010ffff")
        asked = "" if removals else " AND text IS NOT NULL"
        with self._database.reading() as connection:
            count: int = connection.execute(
                f"SELECT (SELECT count(*) FROM outbox WHERE {within}{asked}) + "
                f"(SELECT count(*) FROM dead_letters WHERE {within} AND text IS NOT NULL AND NOT ?4)",
                (*bindings, removals),
            ).get
        return count

    def waiting_of(self, collection: str, ids: Iterable[str], *, dead: bool = True) -> set[str]:
        """Which of these texts have no vector yet, because they wait or, with `dead`, were given up."""
        with self._database.reading() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(
                "SELECT id FROM outbox WHERE collection = ?1 AND text IS NOT NULL AND id IN (SELECT value FROM "
                "json_each(?2)) UNION SELECT id FROM dead_letters WHERE collection = ?1 AND ?3 AND text IS NOT NULL "
                "AND id IN (SELECT value FROM json_each(?2))",
                (collection, json.dumps(list(ids)), dead),
            ).fetchall()
        return {one for (one,) in rows}

    def ready(self, count: int, age: float) -> bool:
        """Whether a batch is due: `count` requests that nobody holds wait, or one has waited for `age` seconds."""
        now = time.time()
        with self._database.reading() as connection:
            found, oldest = connection.execute(
                "SELECT count(*), min(queued) FROM "
                f"(SELECT queued FROM outbox WHERE {FREE} ORDER BY queued LIMIT :count)",
                {"now": now, "count": count, "living": self._living(connection, now)},
            ).get
        return found >= count or (oldest is not None and now - oldest >= age)

    def _living(self, connection: Connection, now: float) -> str:
        """The workers that hold something and are not certainly dead, as JSON."""
        owners: list[tuple[Any, ...]] = connection.execute(
            "SELECT DISTINCT owner FROM outbox WHERE owner IS NOT NULL AND leased > ?", (now,)
        ).fetchall()
        return json.dumps([owner for (owner,) in owners if not _orphaned(owner)])

    def _free(self, connection: Connection, claimed: Sequence[Claimed]) -> None:
        connection.executemany(
            "UPDATE outbox SET owner = NULL, leased = 0 WHERE collection = ? AND id = ? AND owner = ?",
            [(one.request.collection, one.request.id, self._owner) for one in claimed],
        )


def _backlog(connection: Connection) -> Backlog:
    waiting, oldest, failing, dead = connection.execute(
        "SELECT count(*), min(queued), count(error), (SELECT count(*) FROM dead_letters) FROM outbox"
    ).get
    return Backlog(waiting, max(0.0, time.time() - oldest) if oldest else 0.0, failing, dead)


def _orphaned(owner: str) -> bool:
    """Whether the holder of a lease is certainly gone: a process of this machine that does not run."""
    host, pid, process, _ = owner.rsplit(":", 3)
    if host != socket.gethostname():
        return False
    if int(pid) == os.getpid():
        return process != PROCESS
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _ticket() -> int:
    return secrets.randbits(62)


def _key(claimed: Claimed) -> tuple[str, str, int]:
    return claimed.request.collection, claimed.request.id, claimed.ticket


def _dump(metadata: Mapping[str, Any]) -> str:
    return json.dumps(dict(metadata), ensure_ascii=False)
