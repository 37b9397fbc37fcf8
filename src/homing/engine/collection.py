"""Writing: texts are durable and found by words when a call returns, and their vectors are asked for with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from homing.database import Database, Transaction
from homing.engine.models import ModelsInUse
from homing.engine.wanted import Wanted, scope_of
from homing.engine.work import INTERACTIVE, Work
from homing.records import VectorRecord
from homing.stores.store import Store


class Collection:
    """One collection of a store. `written` is called after each write that commits here: a worker may want to know."""

    def __init__(
        self,
        name: str,
        *,
        store: Store,
        database: Database,
        models: ModelsInUse,
        work: Work,
        wanted: Wanted,
        written: Callable[[], None],
    ) -> None:
        self.name = name
        self._store = store
        self._database = database
        self._models = models
        self._work = work
        self._wanted = wanted
        self._written = written

    @property
    def scope(self) -> str:
        """The scope of a transaction that writes here; see `Database.write`."""
        return scope_of(self.name)

    def write(
        self,
        records: Iterable[VectorRecord],
        transaction: Transaction | None = None,
        *,
        priority: int = INTERACTIVE,
        settle: float = 0.0,
    ) -> int:
        """Keep texts; returns how many. They are embedded in the background, after `settle` seconds without a change.

        With a transaction, of this collection's scope, they are kept if and only if that commits; then call `notify`. A
        store that is no database cannot join one: there the texts are written first, and vectors asked for afterwards.
        """
        given = list(records)
        if not given:
            return 0
        if transaction is None:
            count = self._database.write(lambda own: self._write(own, given, priority, settle), self.scope)
            self._written()
            return count
        return self._write(transaction, given, priority, settle)

    def delete(self, ids: Sequence[str], transaction: Transaction | None = None) -> int:
        """Remove texts with everything that was made of them; returns how many there were."""
        if transaction is None:
            return self._database.write(lambda own: self.delete(ids, own), self.scope)
        self._work.remove(transaction, self.name, ids)
        return self._store.delete(self.name, ids, transaction if self._store.database is not None else None)

    def drop(self) -> int:
        """Remove everything; returns how many texts there were."""
        self._database.write(lambda own: self._work.remove_all(own, self.name), self.scope)
        return self._store.drop(self.name)

    def embed_again(self, ids: Sequence[str], transaction: Transaction, *, priority: int = INTERACTIVE) -> None:
        """Ask for vectors of texts that are there already."""
        if self._models.embeds:
            self._work.add(transaction, self.name, dict.fromkeys(ids, 0), priority=priority)

    def notify(self) -> None:
        """Tell the worker that a transaction with something to embed was committed."""
        self._written()

    def _write(self, transaction: Transaction, records: Sequence[VectorRecord], priority: int, settle: float) -> int:
        count = self._store.write(records, transaction if self._store.database is not None else None)
        self._work.register(transaction)
        if self._models.embeds:
            sizes = {one.id: len(one.text.encode("utf-8", "replace")) for one in records if one.embedding is None}
            self._work.add(transaction, self.name, sizes, priority=priority, settle=settle)
            if wanted := self._wanted.of(transaction, self.name):
                self._work.add(transaction, self.name, sizes, model=wanted, priority=priority + 1, settle=settle)
        return count
