"""A process that reindexes a project, writing down each text that it embeds, until it is done or killed.

python -m tests.documents.killed_reindex <folder>
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from homing.embedders.provider import Kind
from homing.testing.fake import FakeEmbedder
from homing.vectors import Matrix
from tests.documents.novel import Library

BATCH = 16


class Recording(FakeEmbedder):
    """Writes down what it embeds, so that what killed processes embedded is known too."""

    def __init__(self, log: Path) -> None:
        super().__init__(32)
        self._log = log
        self.delay = 0.02

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        rows = super().embed(texts, kind=kind)
        with self._log.open("a", encoding="utf-8") as log:
            log.write("".join(f"{text}\n" for text in texts))
        return rows


def reindex(folder: Path) -> None:
    """Reindex and say so."""
    library = Library(folder, Recording(folder / "embedded.txt"))
    print("begun", flush=True)
    print(library.documents.reindex(batch_size=BATCH), flush=True)
    library.close()


if __name__ == "__main__":
    reindex(Path(sys.argv[1]))
