"""A store, the models in use, and the worker between them.

What is written is durable and found by words when a call returns, and its vectors are asked for with it.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from homing.database import Database, Transaction
from homing.embedders.provider import EmbeddingProvider
from homing.engine.source import ModelsInUse, as_models
from homing.engine.wanted import Wanted, scope_of
from homing.engine.work import INTERACTIVE, Work
from homing.engine.worker import Worker, WorkerOptions
from homing.errors import EmbeddingError, InvalidArgument, StoreError
from homing.records import VectorRecord
from homing.stores.registry import open_store
from homing.stores.store import MultiUserStore, Store, missing_pages
from homing.text.terms import terms_ahead

log = logging.getLogger(__name__)

CLOSING_SECONDS = 30.0


class Collection:
    """One collection of an engine's store."""

    def __init__(self, name: str, engine: Engine) -> None:
        self.name = name
        self._engine = engine

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
            # Whoever writes to a file has it alone, so all that can be made before is.
            with terms_ahead(one.text if one.keywords is None else one.keywords for one in given):
                count = self._engine.database.write(lambda own: self._write(own, given, priority, settle), self.scope)
            self._engine.written()
            return count
        return self._write(transaction, given, priority, settle)

    def delete(self, ids: Sequence[str], transaction: Transaction | None = None) -> int:
        """Remove texts with everything that was made of them; returns how many there were."""
        if transaction is None:
            return self._engine.database.write(lambda own: self.delete(ids, own), self.scope)
        self._engine.work.remove(transaction, self.name, ids)
        return self._engine.store.delete(self.name, ids, self._joined(transaction))

    def drop(self) -> int:
        """Remove everything; returns how many texts there were."""
        self._engine.database.write(lambda own: self._engine.work.remove_all(own, self.name), self.scope)
        return self._engine.store.drop(self.name)

    def embed_again(self, ids: Sequence[str], transaction: Transaction, *, priority: int = INTERACTIVE) -> None:
        """Ask for vectors of texts that are there already."""
        if self._engine.models.embeds:
            self._engine.work.add(transaction, self.name, dict.fromkeys(ids, 0), priority=priority)

    def embed_missing(self, *, priority: int = INTERACTIVE) -> Iterator[int]:
        """Ask for every vector that is missing of the model that serves the collection; says of each page how many."""
        store = self._engine.store
        for page in missing_pages(store, self.name, store.model_of(self.name)):
            asked = partial(self.embed_again, page, priority=priority)
            self._engine.database.write(asked, self.scope)
            self.notify()
            yield len(page)

    def notify(self) -> None:
        """Tell the worker that a transaction with something to embed was committed."""
        self._engine.written()

    def _write(self, transaction: Transaction, records: Sequence[VectorRecord], priority: int, settle: float) -> int:
        count = self._engine.store.write(records, self._joined(transaction))
        self._engine.work.register(transaction)
        if self._engine.models.embeds:
            sizes = {one.id: len(one.text.encode("utf-8", "replace")) for one in records if one.embedding is None}
            self._engine.work.add(transaction, self.name, sizes, priority=priority, settle=settle)
            if wanted := self._engine.wanted.of(transaction, self.name):
                self._engine.work.add(transaction, self.name, sizes, model=wanted, priority=priority + 1, settle=settle)
        return count

    def _joined(self, transaction: Transaction) -> Transaction | None:
        return None if self._engine.store.database is None else transaction


class Engine:
    """What the capabilities stand on. Texts are written through `collection`; `worker` embeds them.

    The worker starts with the first write of this process, or by `start`. A store that is no database itself (LanceDB)
    is given one for the rows of work; `user` is whose texts these are. Where the store keeps users apart, `for_user` is
    the engine of one of them: this one is its `parent`, whose worker embeds what they write as well. Without
    `background` that is left to `embed_written`, `flush` and `close`.
    """

    def __init__(
        self,
        store: Store,
        models: ModelsInUse | EmbeddingProvider | None,
        *,
        database: Database | None = None,
        user: str = "",
        options: WorkerOptions | None = None,
        background: bool = True,
        parent: Engine | None = None,
    ) -> None:
        database = store.database or database
        if database is None:
            raise InvalidArgument("this store is no database itself; give the engine one for its rows")
        self.store = store
        self.database = database
        self.user = user
        self.models = as_models(models)
        self.work = Work(database, user=user)
        self.wanted = Wanted(database, store, self.work, user=user)
        self.options = options or WorkerOptions()
        self.worker = Worker(database, store, self.models, self.work, self.wanted, self.options, others=self._others)
        self.background = background
        self.written: Callable[[], None] = self._notice if parent is None else parent.written
        """Called after each write that commits here: the worker wants to know."""
        self._keeps_users_apart = not user and isinstance(store, MultiUserStore)
        self._users: dict[str, Engine] = {}
        self._parent = parent
        self._followed = ""
        self._collections: dict[str, Collection] = {}
        self._lock = threading.Lock()
        self._wrote = self._closed = False

    def collection(self, name: str) -> Collection:
        """The collection of that name, which need not exist yet."""
        with self._lock:
            if name not in self._collections:
                self._collections[name] = Collection(name, self)
            return self._collections[name]

    def for_user(self, user: str) -> Engine:
        """The engine of one user, through which nothing of others is reached; it lives as long as this one."""
        if not isinstance(self.store, MultiUserStore):
            raise InvalidArgument("this store does not keep users apart; give each a collection of their own")
        with self._lock:
            if user not in self._users:
                self._users[user] = Engine(
                    self.store.for_user(user), self.models, user=user, options=self.options, parent=self
                )
            return self._users[user]

    def everybody(self) -> list[Engine]:
        """This engine, and those of all users who have texts in its store."""
        return [self, *(self.for_user(user) for user in self.work.users())] if self._keeps_users_apart else [self]

    def register(self) -> None:
        """Have this user known before anything of theirs is written."""
        self.database.write(self.work.register)

    def start(self) -> None:
        """Embed what waits, whoever left it. For the users of an engine its own worker does."""
        (self._parent or self).worker.start()

    def embed_written(self) -> None:
        """Embed what this process wrote, in the calling thread, and wait for what its worker is at.

        A model that is down costs a warning: the texts are kept, found by words, and embedded when it is back.
        """
        while self.worker.run_batch(early=True, mine=True):
            continue
        self.worker.wait_idle()

    def embed_until(self, done: Callable[[], bool]) -> bool:
        """Embed what waits, whoever asked for it, in the calling thread, until something is true; whether it is.

        Collections change to the default model meanwhile. Ends early when nothing more can be done, because the model
        fails or there is none.
        """
        while not (true := done()) and self.worker.step():
            continue
        return true

    def flush(self, timeout: float | None = None) -> bool:
        """Embed everything that waits now; whether nothing is left."""
        return self.worker.flush(timeout)

    def wait(self, collection: str, ids: Sequence[str], timeout: float) -> bool:
        """Give the worker some seconds for these texts; whether they have their vectors.

        Returns at once when they have, and when the model fails: then words find them until it is back.
        """
        if not self.models.embeds:
            return True
        self.worker.wait(lambda: not self.work.untried(collection, ids), timeout)
        return not self.store.texts(collection, ids, lacking=self.store.model_of(collection))

    def close(self, timeout: float | None = CLOSING_SECONDS) -> int:
        """Embed what this process wrote, within the timeout, and stop; returns how many texts still wait.

        Nothing is lost: the next process that writes or serves carries on. Closing twice is fine.
        """
        if self._closed:
            return 0
        self._closed = True
        try:
            deadline = None if timeout is None else time.monotonic() + timeout
            left = 0
            for engine in (self, *self._users.values()):
                rest = None if deadline is None else max(0.0, deadline - time.monotonic())
                left += engine.worker.stop(rest, drain=self._wrote)
            return left
        except StoreError as error:
            # Closing goes on: what waits is kept, whether or not it can be read now.
            log.warning("closing without knowing what still waits for its vector: %s", error)
            return 0

    def _notice(self) -> None:
        self._wrote = True
        if self.background and not self._closed:
            self.worker.start()
            self.worker.notify()

    def _others(self) -> list[Worker]:
        """The workers of users who have something to do; of everybody, where the default model is another now."""
        if not self._keeps_users_apart:
            return []
        users = set(self.work.users_waiting())
        try:
            default = self.models.provider("").id
        except EmbeddingError:
            default = self._followed
        if default != self._followed:
            users.update(self.work.users())
            self._followed = default
        return [self.for_user(user).worker for user in sorted(users)]


def check_transactional(store: Store, what: str) -> None:
    """Refuse a store whose records cannot be written together with rows."""
    if store.database is None:
        raise InvalidArgument(
            f"{what} need a store that is a database, and LanceDB is none; set the store to SQLite or PostgreSQL "
            "and move what is there with `homing store copy`"
        )


def temporary_engine(models: ModelsInUse | EmbeddingProvider | None) -> Engine:
    """An engine over an empty store of its own, which is gone with it."""
    # Hardly anybody needs one, and importing this takes longer than all of the engine.
    from tempfile import TemporaryDirectory

    folder = TemporaryDirectory(prefix="homing-")
    store = open_store(f"sqlite:///{folder.name}/index.db")
    engine = Engine(store, models)
    weakref.finalize(engine, _end, store, folder.cleanup)
    return engine


def _end(store: Store, remove_folder: Callable[[], None]) -> None:
    store.close()
    remove_folder()
