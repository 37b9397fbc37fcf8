"""The bundled model with a clock; by a name that processes elsewhere can import."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from homing.embedders.local import LocalProvider
from homing.embedders.provider import Kind
from homing.vectors import Matrix


class Timed(LocalProvider):
    """The bundled model on one thread, which writes down what each batch took."""

    def __init__(self, folder: str) -> None:
        super().__init__(threads=1)
        # Loading is not embedding, and is paid once for each process.
        super().embed(["warm"])
        self._file = Path(folder, f"{os.getpid()}.log")

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        began = time.process_time()
        rows = super().embed(texts, kind=kind)
        with self._file.open("a") as log:
            log.write(f"{time.process_time() - began} {len(texts)}\n")
        return rows
