"""Texts that are longer than what a model reads, embedded as a whole all the same."""

from __future__ import annotations

from collections.abc import Sequence

from homing.embedders.provider import EmbeddingProvider
from homing.text.paragraphs import paragraphs
from homing.vectors import Matrix, normalise

SURELY_SHORT = 128
"""Characters that every model's window holds; shorter texts need not be looked at."""


def embed_long(embedder: EmbeddingProvider, texts: Sequence[str]) -> Matrix:
    """One row per text, as `embed` gives it; a text beyond the model's window gets the direction its paragraphs share.

    Cut at the window, the second half of a page of Chinese could not be found by what it says.
    """
    long = [at for at, text in enumerate(texts) if len(text) > SURELY_SHORT]
    if not long or not any(beyond := embedder.truncated([texts[at] for at in long])):
        return embedder.embed(texts)
    cut = {
        at: [one.text for one in paragraphs(texts[at])] for at, is_beyond in zip(long, beyond, strict=True) if is_beyond
    }
    pieces = [piece for at, text in enumerate(texts) for piece in cut.get(at) or [text]]
    rows = embedder.embed(pieces)
    whole = []
    first = 0
    for at in range(len(texts)):
        last = first + max(1, len(cut.get(at, ())))
        whole.append(rows[first:last].mean(axis=0))
        first = last
    return normalise(whole)
