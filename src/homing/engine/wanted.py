"""Which collections want another model than the one that serves them."""

from __future__ import annotations

from dataclasses import dataclass

from homing.database import Database, Transaction
from homing.engine.work import CHANGE, Work
from homing.stores.store import Store, missing_pages

PAGE = 5_000
"""Texts that are listed in one transaction."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A collection, the model it wants, and whether everything it lacks is listed as work."""

    collection: str
    model: str
    listed: bool
    started: float


class Wanted:
    """Turns a change of model into work like any other.

    A collection goes on being served by its old vectors, for new texts too, until every text has a vector of the new
    model, dead letters aside; then the new ones serve it, in one step. The old ones stay until they are discarded.
    """

    def __init__(self, database: Database, store: Store, work: Work, *, user: str = "") -> None:
        self._database = database
        self._store = store
        self._work = work
        self._user = user

    def all(self) -> list[Wish]:
        """What is wanted now."""
        statement = "SELECT collection, model, listed, started FROM wanted WHERE user_name = $1 ORDER BY collection"
        found = self._database.read(lambda transaction: transaction.rows(statement, self._user))
        return [Wish(collection, model, bool(listed), started) for collection, model, listed, started in found]

    def of(self, transaction: Transaction, collection: str) -> str:
        """The model that a collection wants; empty where it is content."""
        found = transaction.rows(
            "SELECT model FROM wanted WHERE user_name = $1 AND collection = $2", self._user, collection
        )
        return str(found[0][0]) if found else ""

    def want(self, collection: str, model: str) -> None:
        """Have a collection change to a model, or stay with the one that serves it."""
        served = self._store.model_of(collection)

        def work(transaction: Transaction) -> None:
            before = self.of(transaction, collection)
            if before == model:
                return
            if before:
                transaction.rows(
                    "DELETE FROM work WHERE user_name = $1 AND collection = $2 AND model = $3",
                    *(self._user, collection, before),
                )
            transaction.rows("DELETE FROM wanted WHERE user_name = $1 AND collection = $2", self._user, collection)
            if served and model != served:
                transaction.rows(
                    "INSERT INTO wanted(user_name, collection, model, listed, started) VALUES ($1, $2, $3, 0, $4)",
                    *(self._user, collection, model, transaction.now()),
                )

        self._database.write(work, scope_of(collection))

    def list_missing(self, wish: Wish) -> bool:
        """Ask for a vector of every text that has none of the wanted model, dead letters aside; whether any was asked.

        Killed half-way, it is done again.
        """
        asked = False
        for page in missing_pages(self._store, wish.collection, wish.model, PAGE):

            def work(transaction: Transaction, page: list[str] = page) -> bool | None:
                if self.of(transaction, wish.collection) != wish.model:
                    return None
                found = transaction.rows(
                    "SELECT id FROM work WHERE user_name = $1 AND collection = $2 AND model = $3 AND id = ANY($4)",
                    *(self._user, wish.collection, wish.model, page),
                )
                known = {one for (one,) in found}
                sizes = {one: 0 for one in page if one not in known}
                self._work.add(transaction, wish.collection, sizes, model=wish.model, priority=CHANGE)
                return bool(sizes)

            added = self._database.write(work, scope_of(wish.collection))
            if added is None:
                return False
            asked = asked or added
        self._database.write(
            lambda transaction: transaction.rows(
                "UPDATE wanted SET listed = 1 WHERE user_name = $1 AND collection = $2 AND model = $3",
                *(self._user, wish.collection, wish.model),
            ),
            scope_of(wish.collection),
        )
        return asked

    def settle(self, wish: Wish) -> bool:
        """Let the wanted model serve the collection if nothing is missing; whether it does.

        Whoever writes to the store without the engine asks for nothing: so what is missing is looked for once more.
        """
        if self._work.waiting(wish.collection, model=wish.model) or self.list_missing(wish):
            return False

        if all(info.model != wish.model for info in self._store.models(wish.collection)):
            # Every text is gone, or is one that this model cannot embed.
            return False

        def work(transaction: Transaction) -> bool:
            # Looked at again: the wish may have been given up and made anew since, with nothing listed yet.
            [(ready,)] = transaction.rows(
                "SELECT count(*) FROM wanted WHERE user_name = $1 AND collection = $2 AND model = $3 AND listed = 1 "
                "AND NOT EXISTS (SELECT 1 FROM work WHERE work.user_name = $1 AND work.collection = $2 "
                "AND work.model = $3 AND dead = 0)",
                *(self._user, wish.collection, wish.model),
            )
            if not ready:
                return False
            joined = transaction if self._store.database is not None else None
            self._store.serve(wish.collection, wish.model, joined)
            transaction.rows("DELETE FROM wanted WHERE user_name = $1 AND collection = $2", self._user, wish.collection)
            return True

        return self._database.write(work, scope_of(wish.collection))


def scope_of(collection: str) -> str:
    """The scope of whoever writes to a collection: up to the first dot of its name, so that `skills` and
    `skills.passages` can be written together."""
    return f"collection:{collection.partition('.')[0]}"
