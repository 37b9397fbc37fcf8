"""Which texts share a run of the model: only texts of equal length, so that no run holds padding."""

from __future__ import annotations

from collections.abc import Sequence

TOKENS_PER_BATCH = 1024
"""Bounds the memory of one run, however many texts are asked for; larger batches are not faster."""


def plan_batches(lengths: Sequence[int], *, tokens: int = TOKENS_PER_BATCH) -> list[list[int]]:
    """Groups positions of equal length, longest first; a batch holds at most `tokens` tokens, but always one text.

    Every position occurs exactly once. Longest first, so that workers that share the list end at about the same time.
    """
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    batches: list[list[int]] = []
    for length in sorted(by_length, reverse=True):
        positions = by_length[length]
        size = max(1, tokens // max(1, length))
        batches.extend(positions[start : start + size] for start in range(0, len(positions), size))
    return batches
