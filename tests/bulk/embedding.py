"""What workers embed with in these tests; they import it by name."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from homing.embedders.provider import Kind
from homing.errors import ProviderUnavailable
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix


class Counting(FakeEmbedder):
    """Writes down every text that it embeds, so that a test sees what was embedded twice, and where.

    It answers nothing before so many `processes` embed.
    """

    def __init__(self, folder: Path, fails_on: str = "", processes: int = 1) -> None:
        super().__init__()
        self._file = folder / f"{os.getpid()}.log"
        self._fails_on = fails_on
        self._processes = processes

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        with self._file.open("a", encoding="utf-8") as written:
            written.writelines(f"{text}\n" for text in texts)
        while len(list(self._file.parent.glob("*.log"))) < self._processes:
            time.sleep(0.05)
        if self._fails_on and any(self._fails_on in text for text in texts):
            raise ProviderUnavailable("the model is down")
        return super().embed(texts, kind=kind)


def embedded(folder: Path) -> list[str]:
    """Every text that was embedded, as often as it was."""
    return [text for file in folder.glob("*.log") for text in file.read_text(encoding="utf-8").splitlines()]
