"""Changes the default model without costing anybody an answer.

The new default holds at once for what is new. Collections are served by their model while their texts are embedded
again beside it, as work like any other (`homing.engine`); then each changes over in one step. A switch that was killed
goes on wherever a worker runs.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from homing.database import Database
from homing.engine.engine import Engine
from homing.engine.wanted import Wish
from homing.errors import EmbeddingError, NotFound, ProviderUnavailable, RateLimited, Timeout
from homing.models.choice import Models
from homing.models.records import COMPONENT, LLMModel
from homing.stores.store import ModelInfo

BATCH = 128
"""Texts embedded and written together: enough for one request, few enough that little is lost with a killed process."""
PATIENCE = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds to wait, one after the other, for a provider that does not answer, before `run` stops."""

WORTH_WAITING = (Timeout.code, RateLimited.code, ProviderUnavailable.code)

Progress = Callable[[int, int], None]
"""Called with how many texts are embedded, and how many there are."""


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """The models of one collection; the first serves it."""

    collection: str
    records: int
    models: tuple[ModelInfo, ...]


@dataclass(frozen=True, slots=True)
class SwitchState:
    """A change that is under way: how far it has come, whether somebody is at it, and why it stopped, if it did."""

    target: str
    done: int
    total: int
    running: bool
    seconds_left: float | None
    error: str


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """Where things stand. `finished` is whether every collection is served by the default model."""

    default: str
    finished: bool
    state: SwitchState | None
    collections: tuple[CollectionStatus, ...]


class ModelSwitch:
    """Brings every collection of some engines to the default model, and back."""

    def __init__(self, models: Models, engines: Callable[[], Sequence[Engine]]) -> None:
        self._models = models
        self._engines = engines

    def make_default(self, model: LLMModel) -> None:
        """Make a model the default from the next call on, remembering the way back. Workers, or `run`, do the rest.

        The model is asked once first: one that does not answer is not made the default, and raises what it raises.
        """
        config = self._models.config
        before = config.ensure_default_embedding_model()
        adapter = self._models.adapter(model)
        # A text that nobody has embedded before: a remembered vector would prove nothing.
        adapter.embed([f"homing {secrets.token_hex(8)}"])
        # A switch that was not finished is replaced; the way back still leads to what serves.
        previous = before.id if self.status().finished else self._previous() or before.id
        config.update_model(model.id, is_default=True)
        if before.id != model.id:
            self._remember(previous if previous != model.id else before.id)

    def run(self, progress: Progress | None = None) -> int:
        """Embed again whatever another model serves, and change over; returns how many collections did.

        Works beside whoever else does. A provider that does not answer is waited for a while; raises EmbeddingError
        when it stays away, and the next run, or a worker, goes on.
        """
        target = self._models.provider()
        before = self._outdated(target.id)
        count = _Count(progress)
        for engine in self._engines():
            self._drain(engine, target.id, count)
        return len(before - self._outdated(target.id))

    def status(self) -> SwitchStatus:
        """Which model serves what, and how far a change has come."""
        try:
            default = self._models.provider().id if self._models.embeds else ""
        except EmbeddingError:
            default = ""
        found = tuple(self._held())
        finished = not default or all(one.models[0].model == default for one in found if one.models)
        return SwitchStatus(default, finished, None if finished else self._state(default), found)

    def rollback(self) -> LLMModel:
        """Make the model before the latest switch the default again.

        Its vectors were kept, so collections that nobody wrote to change back at once, and the others as soon as what
        was written since has a vector of that model. Raises NotFound where no vectors were kept.
        """
        previous = self._previous()
        if previous is None:
            raise NotFound("there is no earlier model to go back to")
        config = self._models.config
        before, now = config.get_model(previous), config.ensure_default_embedding_model()
        identity = self._models.adapter(before).id
        held = list(self._held())
        if held and not any(space.model == identity and space.embedded for one in held for space in one.models):
            raise NotFound(
                f"the vectors of {before.model_key} are not kept any more; "
                f"embed again with `homing models default {before.model_key}`"
            )
        config.update_model(before.id, is_default=True)
        self._remember(now.id)
        for engine in self._engines():
            engine.worker.follow()
        return before

    def discard(self) -> int:
        """Let go of every vector that does not serve; returns how many. The latest switch cannot be undone then."""
        count = 0
        for engine in self._engines():
            wanted = {wish.collection: wish.model for wish in engine.wanted.all()}
            for info in engine.store.collections():
                for held in engine.store.models(info.name):
                    if not held.served and held.model != wanted.get(info.name):
                        count += engine.store.discard(info.name, held.model)
        return count

    def _previous(self) -> int | None:
        """The id of the model before the latest switch; None where there never was one."""
        found = self._database.read(lambda transaction: transaction.rows("SELECT previous FROM model_switch"))
        return None if not found else int(found[0][0])

    def _remember(self, previous: int) -> None:
        """A switch was begun; this model was the default before it."""
        self._database.write(
            lambda transaction: transaction.rows(
                "INSERT INTO model_switch(one, previous) VALUES (1, $1) "
                "ON CONFLICT(one) DO UPDATE SET previous = excluded.previous",
                previous,
            ),
            COMPONENT,
        )

    @property
    def _database(self) -> Database:
        # Opening the configuration makes the tables.
        assert self._models.config is not None
        return self._models.database

    def _held(self) -> Iterator[CollectionStatus]:
        for engine in self._engines():
            wishes = {wish.collection: wish.model for wish in engine.wanted.all()}
            for info in engine.store.collections():
                if info.embedded:
                    name = f"{info.name} ({engine.user})" if engine.user else info.name
                    models = engine.store.models(info.name)
                    wanted = wishes.get(info.name, models[0].model)
                    if all(one.model != wanted for one in models):
                        models.append(ModelInfo(wanted, 0, 0, served=False))
                    yield CollectionStatus(name, info.records, tuple(models))

    def _outdated(self, identity: str) -> set[tuple[int, str]]:
        return {
            (number, info.name)
            for number, engine in enumerate(self._engines())
            for info in engine.store.collections()
            if info.embedded and info.model != identity
        }

    def _wishes(self) -> Iterator[tuple[Engine, Wish]]:
        return ((engine, wish) for engine in self._engines() for wish in engine.wanted.all())

    def _state(self, default: str) -> SwitchState:
        done = total = 0
        running, error, seconds = False, "", 0.0
        for engine, wish in self._wishes():
            records = next((one.records for one in engine.store.collections() if one.name == wish.collection), 0)
            left, held, failure = engine.work.state_of(wish.collection, wish.model)
            done, total = done + records - (left if wish.listed else records), total + records
            running, error = running or held, error or failure
            seconds = max(seconds, time.time() - wish.started)
        left_over = seconds / done * (total - done) if done and seconds > 0 else None
        return SwitchState(default, done, total, running, left_over, error)

    def _drain(self, engine: Engine, target: str, count: _Count) -> None:
        """Work until no collection of an engine wants another model."""
        patience = iter(PATIENCE)
        left = 0
        engine.work.flush()
        while True:
            engine.worker.follow()
            left = count.moved(left, _left(engine))
            worked = engine.worker.run_batch(BATCH, early=True)
            left = count.moved(left, _left(engine))
            wishes = engine.wanted.all()
            if not wishes or self._models.provider().id != target:
                return
            if worked:
                continue
            error = max(engine.work.state_of(wish.collection, wish.model)[2] for wish in wishes)
            wait = next(patience, None) if error.startswith(WORTH_WAITING) else None if error else 0.05
            if wait is None:
                raise EmbeddingError(f"the new model does not answer, the old one goes on serving: {error}")
            time.sleep(wait)
            if error:
                engine.work.flush()


def _left(engine: Engine) -> int:
    return sum(engine.work.state_of(wish.collection, wish.model)[0] for wish in engine.wanted.all())


class _Count:
    """Adds up what is embedded, over everything that changes its model."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = self._total = 0

    def moved(self, before: int, now: int) -> int:
        """So many are left of those that were; returns that. What was written meanwhile comes on top."""
        self._done += max(0, before - now)
        self._total = max(self._total + max(0, now - before), self._done)
        if self._progress is not None and now < before:
            self._progress(self._done, self._total)
        return now
