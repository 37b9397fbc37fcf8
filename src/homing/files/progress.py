"""How far the reading of a file is: a long one takes minutes."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Told how many of the pages or chapters of a file are read, of how many; what it raises ends the reading."""


def to_nobody(done: int, total: int) -> None:
    """Where nobody wants to know."""
