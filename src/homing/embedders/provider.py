"""The seam between text and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from homing.vectors import Matrix, Scale

Kind = Literal["document", "query"]
"""What a text is for; some models embed a question differently from what answers it."""


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Turns text into vectors.

    `embed` gives one unit-length float32 row per text, in order, `dimensions` wide; the same text gives the same row,
    alone or in a batch. No texts give a matrix of no rows. Texts longer than the model's window are cut at its end, and
    `truncated` says which. Safe to call from several threads. Raises only EmbeddingError (and InvalidArgument for
    input that is not text).
    """

    @property
    def id(self) -> str:
        """Identity of the vectors: `provider/model@dimensions`. Vectors of two identities are never compared."""

    @property
    def dimensions(self) -> int:
        """Width of every row."""

    @property
    def scale(self) -> Scale | None:
        """How a cosine of this model reads as a score; None where nobody fitted one."""

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        """One row per text."""

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether its end lies beyond what the model reads."""
