"""Changes the default model without costing anybody an answer.

The new default holds at once for what is new. Collections keep their model, which goes on answering, while their texts
are embedded again beside it; then each changes over in one step. Everything that was done is in the stores, so a switch
that was killed is simply run again.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path

from homing.database.sqlite import SqliteDatabase
from homing.embedders.provider import EmbeddingProvider, Kind
from homing.embedders.resilient import RETRIABLE
from homing.embedders.whole import embed_whole
from homing.embedders.wrapper import Wrapper
from homing.errors import HomingError, NotFound, StoreBusy
from homing.models.choice import Models
from homing.models.heartbeat import Heartbeat
from homing.models.records import LLMModel
from homing.models.switch_log import SwitchLog, SwitchState
from homing.models.vector_holder import CollectionStatus, HoldsVectors
from homing.records import VectorRecord
from homing.stores.store import Store
from homing.stores.switching import SwitchingStore
from homing.stores.users import KeepsUsersApart
from homing.vectors import Matrix

log = logging.getLogger(__name__)

BATCH = 128
"""Texts embedded and written together: enough for one request, few enough that little is lost with a killed process."""
PATIENCE = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds to wait, one after the other, for a provider that does not answer, before a switch stops."""
ROUNDS = 5
"""How often a collection is looked through for what was written meanwhile, before it changes over all the same."""
STOPPING_TAKES = 90.0
"""Seconds that a switch which is not wanted any more may take to end: its last batch, and a provider's deadline."""

Progress = Callable[[int, int], None]
"""Called with how many records are embedded, and how many there are."""


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """Where things stand. `finished` is whether every collection answers with the default model."""

    default: str
    finished: bool
    state: SwitchState | None
    collections: tuple[CollectionStatus, ...]


class ModelSwitch:
    """Brings every collection of some stores, and whatever else holds vectors, to the default model, and back.

    `lock` is a file that whoever changes the same collections holds meanwhile.
    """

    def __init__(
        self,
        models: Models,
        stores: Callable[[], Sequence[Store]],
        others: Callable[[], Sequence[HoldsVectors]] = tuple,
        *,
        lock: Path,
    ) -> None:
        self._models = models
        self._stores = stores
        self._others = others
        self._lock = lock

    def make_default(self, model: LLMModel) -> None:
        """Make a model the default from the next call on, remembering the way back. `run` does the rest.

        The model is asked once first: one that does not answer is not made the default, and raises what it raises.
        """
        config = self._models.config
        before = config.ensure_default_embedding_model()
        state = self._log.read()
        adapter = self._models.adapter(model)
        # A text that nobody has embedded before: a remembered vector would prove nothing.
        adapter.embed([f"homing {secrets.token_hex(8)}"])
        # A switch that was not finished is replaced; the way back still leads to what answers.
        unfinished = state is not None and not self.status().finished
        previous = state.previous if state is not None and unfinished else before.id
        config.update_model(model.id, is_default=True)
        if before.id != model.id:
            self._log.begin(adapter.id, previous if previous != model.id else before.id)

    def run(self, progress: Progress | None = None) -> int:
        """Embed again whatever another model answers for, and change over; returns how many collections did.

        Run again after a crash it goes on where it stopped; with nothing to do it returns at once. Ends early where
        the default is changed meanwhile: whoever changed it runs the next one.
        """
        with self._alone():
            target = self._models.for_model("")
            work = [(store, name) for store, name in self._collections() if _unfinished(store, name, target.id)]
            others = [one for one in self._others() if _outdated(one.vectors_held(), target.id)]
            if not work and not others:
                self._log.end()
                return 0
            total = _total(work) + sum(_vectors(one.vectors_held()) for one in others)
            with Heartbeat(self._log, target.id, total, _done(work, target.id)) as pulse:
                try:
                    for store, name in work:
                        self._bring_over(store, name, target, pulse, progress)
                    for other in others:
                        other.bring_over(_Patient(target), lambda count: self._went_on(count, target, pulse, progress))
                except _Superseded:
                    return 0
                except HomingError as error:
                    pulse.failed(f"{error.code}: {error.message}")
                    raise
            return len(work) + len(others)

    def status(self) -> SwitchStatus:
        """Which model answers where, and how far a switch has come."""
        default = self._models.embedder()
        identity = "" if default is None else default.id
        found = tuple(
            CollectionStatus(_told(store, info.name), info.records, tuple(store.spaces(info.name)))
            for store in self._switching()
            for info in store.collections()
            if info.embedded
        ) + tuple(held for other in self._others() if (held := other.vectors_held()) is not None)
        finished = not identity or all(one.spaces[0].model == identity for one in found if one.spaces)
        return SwitchStatus(identity, finished, self._log.read(), found)

    def rollback(self) -> LLMModel:
        """Make the model before the latest switch the default again; the vectors that were kept answer at once.

        `run` afterwards embeds what was written since the switch. Raises NotFound where no vectors were kept.
        """
        state = self._log.read()
        if state is None or state.previous is None:
            raise NotFound("there is no switch to undo")
        config = self._models.config
        before, now = config.get_model(state.previous), config.ensure_default_embedding_model()
        identity = self._models.adapter(before).id
        kept = [(store, name) for store, name in self._collections() if _holds(store, name, identity)]
        if not kept and any(True for _ in self._collections()):
            raise NotFound(
                f"the vectors of {before.model_key} are not kept any more; "
                f"embed again with `homing models default {before.model_key}`"
            )
        config.update_model(before.id, is_default=True)
        self._log.begin(identity, now.id)
        for store, name in kept:
            _go_back(store, name, identity)
        return before

    def discard(self) -> int:
        """Let go of every vector that does not answer; returns how many. The latest switch cannot be undone then."""
        with self._alone():
            return sum(
                store.discard(name, space.model)
                for store, name in self._collections()
                for space in store.spaces(name)
                if not space.active
            )

    @property
    def _log(self) -> SwitchLog:
        # Opening the configuration makes the tables.
        assert self._models.config is not None
        return SwitchLog(self._models.database)

    def _switching(self) -> list[SwitchingStore]:
        return [store for store in self._stores() if isinstance(store, SwitchingStore)]

    def _collections(self) -> Iterator[tuple[SwitchingStore, str]]:
        for store in self._switching():
            for info in store.collections():
                if info.embedded:
                    yield store, info.name

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One switch at a time, in all processes: a transaction on a file of its own, which a killed process leaves."""
        lock = SqliteDatabase(self._lock)
        try:
            with ExitStack() as held:
                self._enter(held, lock)
                yield
        finally:
            lock.close()

    def _enter(self, held: ExitStack, lock: SqliteDatabase) -> None:
        # One that is not wanted any more stops after its batch: it is waited for.
        give_up = time.monotonic() + STOPPING_TAKES
        while True:
            try:
                held.enter_context(lock.writing())
                return
            except StoreBusy as error:
                state = self._log.read()
                wanted = state is None or state.target == self._models.for_model("").id
                if wanted or time.monotonic() > give_up:
                    raise StoreBusy("another process is changing the model; see `homing models status`") from error

    def _bring_over(
        self, store: SwitchingStore, name: str, target: EmbeddingProvider, pulse: Heartbeat, progress: Progress | None
    ) -> None:
        store.stage(name, target.id, target.dimensions)
        for round_ in count(1):
            self._embed_missing(store, name, target, pulse, progress)
            # What was written after the last look is embedded in another round. Where people write faster than the
            # model embeds, that would go on for ever: then a few are found by their words alone until the round after.
            left = store.activate(name, target.id)
            if left and round_ >= ROUNDS and left <= BATCH:
                store.activate(name, target.id, complete=False)
                self._embed_missing(store, name, target, pulse, progress)
                left = 0
            if not left:
                log.info("collection %r now answers with %s", name, target.id)
                return

    def _embed_missing(
        self, store: SwitchingStore, name: str, target: EmbeddingProvider, pulse: Heartbeat, progress: Progress | None
    ) -> None:
        for batch in _batches(store.missing(name, target.id)):
            self._check_wanted(target)
            rows = _patiently(partial(embed_whole, target, [record.text for record in batch]))
            store.add_vectors(
                replace(record, embedding=row, model=target.id) for record, row in zip(batch, rows, strict=True)
            )
            _tell(len(batch), pulse, progress)

    def _went_on(self, count: int, target: EmbeddingProvider, pulse: Heartbeat, progress: Progress | None) -> None:
        _tell(count, pulse, progress)
        self._check_wanted(target)

    def _check_wanted(self, target: EmbeddingProvider) -> None:
        if self._models.for_model("").id != target.id:
            raise _Superseded


class _Superseded(Exception):
    """The default was changed while a switch to the one before was under way."""


class _Patient(Wrapper):
    """A provider that is waited for."""

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """The vectors, after a while."""
        return _patiently(partial(self._provider.embed, texts, kind=kind))


def _tell(count: int, pulse: Heartbeat, progress: Progress | None) -> None:
    pulse.add(count)
    if progress is not None:
        progress(pulse.done, pulse.total)


def _told(store: Store, name: str) -> str:
    """What a collection is called where those of several users are listed."""
    return f"{name} ({store.user_id})" if isinstance(store, KeepsUsersApart) and store.user_id else name


def _outdated(held: CollectionStatus | None, identity: str) -> bool:
    return held is not None and any(space.model != identity for space in held.spaces if space.active)


def _vectors(held: CollectionStatus | None) -> int:
    return 0 if held is None else sum(space.embedded for space in held.spaces)


def _unfinished(store: SwitchingStore, name: str, identity: str) -> bool:
    """Whether another model answers, or something that has a vector has none of this model."""
    spaces = store.spaces(name)
    if not spaces or not spaces[0].active or spaces[0].model != identity:
        return True
    return len(spaces) > 1 and next(store.missing(name, identity), None) is not None


def _holds(store: SwitchingStore, name: str, identity: str) -> bool:
    return any(space.model == identity and space.embedded for space in store.spaces(name))


def _go_back(store: SwitchingStore, name: str, identity: str) -> None:
    """Let kept vectors answer, where they are most of what there is; the others change over when they are complete."""
    missing = store.activate(name, identity)
    held = next(space.embedded for space in store.spaces(name) if space.model == identity)
    if missing and missing <= held:
        store.activate(name, identity, complete=False)


def _total(work: Iterable[tuple[SwitchingStore, str]]) -> int:
    return sum(max((space.embedded for space in store.spaces(name)), default=0) for store, name in work)


def _done(work: Iterable[tuple[SwitchingStore, str]], identity: str) -> int:
    return sum(space.embedded for store, name in work for space in store.spaces(name) if space.model == identity)


def _batches(records: Iterator[VectorRecord]) -> Iterator[list[VectorRecord]]:
    while batch := list(islice(records, BATCH)):
        yield batch


def _patiently(embed: Callable[[], Matrix]) -> Matrix:
    """The vectors; a provider that does not answer is waited for a while, because starting over costs more."""
    for wait in PATIENCE:
        try:
            return embed()
        except RETRIABLE as error:
            asked = getattr(error, "retry_after", None) or 0.0
            log.warning("the model does not answer, waiting %.0f s: %s", max(wait, asked), error)
            time.sleep(max(wait, asked))
    return embed()
