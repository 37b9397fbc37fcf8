"""Who is at work on a shared database: a row for each server and worker, renewed while it lives.

What a process held when it died is free for others at once where they see that it is gone (on the same machine, in the
same container), else when its row has not been renewed for a while, by the clock of the database.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from homing.database import Database, Transaction
from homing.engine.processes import is_gone, this_process
from homing.errors import HomingError, StoreError

log = logging.getLogger(__name__)

RENEWED = 10.0
"""Seconds after which a process says again that it lives."""
LOST = 60.0
"""Seconds without a word after which it is taken for dead."""
FORGOTTEN = 86_400.0
"""Seconds after which its row goes: nothing that it held has a lease that long."""


@dataclass(frozen=True, slots=True)
class Present:
    """A server or a worker that lives, and the variables with keys of providers that are not set where it runs."""

    name: str
    kind: str
    host: str
    unset: tuple[str, ...]


def gone(transaction: Transaction, holders: Iterable[str], now: float, *, local: bool) -> set[str]:
    """Which of these holders, each a process and what it calls itself, have certainly or most likely died."""
    silent = transaction.rows("SELECT name FROM processes WHERE seen < $1", now - LOST)
    names = {name for (name,) in silent}
    return {one for one in holders if one.rpartition(":")[0] in names or is_gone(one, local=local)}


def present(database: Database) -> list[Present]:
    """The servers and workers that live, by kind and host; makes no table."""
    if database.applied("work") < 2:
        return []
    found = database.read(
        lambda own: own.rows(
            "SELECT name, kind, host, unset FROM processes WHERE seen >= $1 ORDER BY kind, host, name", own.now() - LOST
        )
    )
    return [Present(name, kind, host, tuple(unset.split())) for name, kind, host, unset in found]


class Presence:
    """The row of this process, from `start` to `close`. `unset` is asked each time that it is renewed."""

    def __init__(self, database: Database, kind: str, unset: Callable[[], Sequence[str]]) -> None:
        self._database = database
        self._kind = kind
        self._unset = unset
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="homing-presence", daemon=True)

    def start(self) -> None:
        """Say that this process lives, now and again."""
        self._renew()
        self._thread.start()

    def close(self) -> None:
        """Say goodbye."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self._database.write(lambda own: own.rows("DELETE FROM processes WHERE name = $1", this_process()))
        except StoreError as error:
            log.warning("others will find out by themselves that this process has ended: %s", error)

    def _run(self) -> None:
        while not self._closing.wait(RENEWED):
            try:
                self._renew()
            except HomingError as error:
                log.warning("others may take this process for dead: %s", error)

    def _renew(self) -> None:
        row = (this_process(), self._kind, socket.gethostname(), " ".join(sorted(self._unset())))

        def work(transaction: Transaction) -> None:
            now = transaction.now()
            transaction.rows(
                "INSERT INTO processes(name, kind, host, unset, seen) VALUES ($1, $2, $3, $4, $5) "
                "ON CONFLICT(name) DO UPDATE SET unset = excluded.unset, seen = excluded.seen",
                *(*row, now),
            )
            transaction.rows("DELETE FROM processes WHERE seen < $1", now - FORGOTTEN)

        self._database.write(work, awaited=False)
