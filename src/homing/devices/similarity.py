"""How alike an action and a command are, by the vectors of their words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from threading import Lock

import numpy as np

from homing.embedders.provider import EmbeddingProvider
from homing.vectors import Matrix, score_of

SimilarityFunc = Callable[[str, str], float]
"""Likeness of an action and a text of a command, comparable with a threshold of 0.5."""


class VectorSimilarity:
    """The score of two texts under an embedder. A text is embedded once, in batches where `prepare` was called."""

    def __init__(self, embedder: EmbeddingProvider) -> None:
        self._embedder = embedder
        self._rows: dict[str, int] = {}
        # Not of the embedder's width yet: a model that is not there has none to tell.
        self._matrix: Matrix = np.zeros((0, 0), dtype=np.float32)
        self._actions: dict[str, tuple[int, Matrix]] = {}
        self._lock = Lock()

    def prepare(self, texts: Iterable[str]) -> int:
        """Embeds the texts that are new; says how many they were."""
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text.strip() and text not in self._rows]
            if new:
                rows = self._embedder.embed(new, kind="document")
                first = len(self._matrix)
                self._matrix = np.vstack([self._matrix, rows]) if first else rows
                self._rows.update({text: first + position for position, text in enumerate(new)})
            return len(new)

    def best(self, action: str, texts: Sequence[str]) -> float:
        """The score of the text that is most like the action; 0 without texts."""
        if not action.strip():
            return 0.0
        self.prepare(texts)
        rows = [self._rows[text] for text in texts if text in self._rows]
        if not rows:
            return 0.0
        cosines = self._cosines(action)
        return score_of(float(cosines[rows].max()), self._embedder.scale)

    def __call__(self, a: str, b: str) -> float:
        return self.best(a, [b])

    def _cosines(self, action: str) -> Matrix:
        """The action against every text at once; kept until texts are added."""
        with self._lock:
            known = self._actions.get(action)
            if known is None or known[0] != len(self._matrix):
                if len(self._actions) > 256:
                    self._actions.clear()
                vector = self._embedder.embed([action], kind="query")[0]
                known = (len(self._matrix), self._matrix @ vector)
                self._actions[action] = known
            return known[1]


@cache
def default_similarity() -> VectorSimilarity:
    """The bundled model, loaded when it is first asked."""
    from homing.embedders.local import LocalProvider

    return VectorSimilarity(LocalProvider())
