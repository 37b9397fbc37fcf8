"""An engine over one file, and embedders that can be held, or that something happens in the middle of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.engine import Engine, ModelsInUse
from homing.engine.batch import Retries
from homing.engine.search import search
from homing.engine.work import INTERACTIVE
from homing.engine.worker import WorkerOptions
from homing.errors import EmbeddingError
from homing.records import Retrieved, VectorRecord
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix

QUICK = WorkerOptions(batch_size=4, retries=Retries(attempts=2, backoff=0.01, max_backoff=0.05))
SOON = 60.0
"""Seconds after which a test gives up; nothing is measured by it."""


class Parts:
    """A store and an engine over it. What is `put` is embedded by `flush`, or once the worker was started."""

    def __init__(
        self,
        path: Path,
        models: EmbeddingProvider | ModelsInUse | None = None,
        options: WorkerOptions = QUICK,
        *,
        store: type[SqliteStore] = SqliteStore,
    ) -> None:
        self.embedder = models if isinstance(models, FakeEmbedder) else FakeEmbedder()
        self.store = store(path)
        self.engine = Engine(self.store, self.embedder if models is None else models, options=options)

    def put(
        self, texts: dict[str, str], collection: str = "notes", *, priority: int = INTERACTIVE, settle: float = 0.0
    ) -> None:
        """Write texts without starting the worker."""
        kept = self.engine.collection(collection)
        records = [VectorRecord(key, collection, None, {}, text) for key, text in texts.items()]
        self.engine.database.write(
            lambda transaction: kept.write(records, transaction, priority=priority, settle=settle), kept.scope
        )

    def embedded(self, collection: str = "notes") -> dict[str, str]:
        """The texts that have the vector of what they say, and of nothing else."""
        found = [one for one in self.store.records(collection) if one.embedding is not None]
        for one in found:
            assert one.embedding is not None
            expected = FakeEmbedder(len(one.embedding)).embed([one.text])[0]
            assert np.allclose(one.embedding, expected, atol=1e-6), f"{one.id} has the vector of another text"
        return {one.id: one.text for one in found}

    def search(self, query: str, collection: str = "notes") -> Retrieved:
        return search(query, collection, store=self.store, embedder=self.engine.models)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait while the worker works."""
        assert self.engine.worker.wait(condition, SOON), "it did not come true"

    def close(self) -> None:
        self.engine.close(10)
        self.store.close()


class Held(FakeEmbedder):
    """An embedder whose calls wait until it is let go; `entered` is set when one does."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        if kind == "document":
            self.entered.set()
            assert self.go.wait(SOON)
        return super().embed(texts, kind=kind)


class Interrupted(FakeEmbedder):
    """An embedder in the middle of whose first call something happens."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        rows = super().embed(texts, kind=kind)
        if self.calls == 1:
            self._happens()
        return rows


class Choosy(FakeEmbedder):
    """An embedder that cannot embed texts with 毒 in them, unless it is `cured`."""

    cured = False

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        rows = super().embed(texts, kind=kind)
        if not self.cured and any("毒" in text for text in texts):
            raise EmbeddingError("cannot embed this")
        return rows


def texts(count: int, what: str = "text") -> dict[str, str]:
    """So many texts under their ids."""
    return {f"{what} {number:03}": f"{what} {number:03}" for number in range(count)}
