"""A model that answers when it is let, so that something can happen in the meantime."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from homing.embedders.provider import Kind
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix


class Gated(FakeEmbedder):
    """`asked` is set once somebody waits for vectors; `answer` lets everybody have theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answer = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        self.asked.set()
        assert self.answer.wait(120)
        return super().embed(texts, kind=kind)
