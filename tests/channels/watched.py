"""An app whose model can be watched and held up."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from homing.app import Homing
from homing.config import Settings
from homing.embedders.local import LocalProvider
from homing.embedders.provider import EmbeddingProvider, Kind, Wrapper
from homing.engine import Engine
from homing.vectors import Matrix


class WatchedModel(Wrapper):
    """The bundled model. `texts` lists the paragraphs it embedded; it embeds none while `go` is clear."""

    def __init__(self) -> None:
        super().__init__(LocalProvider())
        self.go = threading.Event()
        self.go.set()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        if kind == "document":
            self.go.wait(120)
            self.texts += texts
        return super().embed(texts, kind=kind)


class WatchedHoming(Homing):
    """An app on that model."""

    def __init__(self, data: Path) -> None:
        super().__init__(Settings(data=data))
        self.model = WatchedModel()

    @property
    def embedder(self) -> EmbeddingProvider:
        return self.model

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.store, self.model)

    def close(self) -> None:
        self.model.go.set()
        super().close()
