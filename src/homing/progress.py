"""How far a long piece of work is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with how much is done, and how much there is to do; what it raises ends the work."""


def no_progress(done: int, total: int) -> None:
    """Where nobody wants to know."""
