"""How far a long piece of work is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with how much is done, and how much there is to do; what it raises ends the work."""

IsCanceled = Callable[[], bool]
"""Says whether the work is wanted no more: asked again and again, also while nothing is done."""


def never() -> bool:
    """For those who do not change their mind."""
    return False


def no_progress(done: int, total: int) -> None:
    """Where nobody wants to know."""
