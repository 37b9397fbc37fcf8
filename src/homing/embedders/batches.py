"""Which texts share a run of the model: only texts of equal length, so that no run holds padding."""

from __future__ import annotations

from collections.abc import Sequence

MAX_TOKENS = 1024
"""A run of so many tokens keeps the integer units busy; larger ones only take more memory."""
MIN_TOKENS = 64
"""Below this a run is bound by reading the weights, so texts are not spread over workers any thinner."""


def plan_batches(lengths: Sequence[int], *, workers: int = 1) -> list[list[int]]:
    """Groups positions of equal length, longest first, in batches small enough that every worker gets some.

    Every position occurs exactly once, and a batch exceeds MAX_TOKENS only when it is a single text. Longest first, so
    that workers that share the list end at about the same time.
    """
    tokens = min(MAX_TOKENS, max(MIN_TOKENS, sum(lengths) // workers))
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    batches: list[list[int]] = []
    for length in sorted(by_length, reverse=True):
        positions = by_length[length]
        size = max(1, tokens // max(1, length))
        batches.extend(positions[start : start + size] for start in range(0, len(positions), size))
    return batches
