"""An engine for what is only searched while a program runs: the tools of a request, the commands of a profile."""

from __future__ import annotations

import weakref
from tempfile import TemporaryDirectory

from homing.embedders.provider import EmbeddingProvider
from homing.engine.engine import Engine
from homing.engine.models import ModelsInUse
from homing.stores.registry import open_store
from homing.stores.store import Store


def temporary_engine(models: ModelsInUse | EmbeddingProvider | None) -> Engine:
    """An engine over an empty store of its own, which is gone with it."""
    folder = TemporaryDirectory(prefix="homing-")
    store = open_store(f"sqlite:///{folder.name}/index.db")
    engine = Engine(store, models)
    weakref.finalize(engine, _end, store, folder)
    return engine


def _end(store: Store, folder: TemporaryDirectory[str]) -> None:
    store.close()
    folder.cleanup()
