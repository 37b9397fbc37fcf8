"""Runs independent pieces of one answer side by side, each with its own outcome, under one deadline."""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from homing.errors import HomingError, Timeout
from homing.threads import ThreadPool

T = TypeVar("T")

# High, because a leg may itself run legs (several collections, two legs each): a small pool could wait for itself.
_POOL = ThreadPool("homing-leg", 512)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of one leg: a value, or the error it ended with; and how long that took."""

    value: T | None
    error: Exception | None
    milliseconds: float

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.error is None

    @property
    def code(self) -> str:
        """The stable code of the error; empty where there is none."""
        if self.error is None:
            return ""
        return self.error.code if isinstance(self.error, HomingError) else "INTERNAL_ERROR"


def run_legs(legs: Mapping[str, Callable[[], T]], *, deadline: float) -> dict[str, Outcome[T]]:
    """Call every leg in a thread of its own and report each outcome by name.

    Each sees the caller's context variables. Never raises what a leg raises. A leg that has not answered after
    `deadline` seconds is left behind with a Timeout; its thread ends by itself when the leg does.
    """
    started = time.perf_counter()
    futures = {name: _POOL.submit(contextvars.copy_context().run, _timed, leg) for name, leg in legs.items()}
    wait(futures.values(), timeout=deadline)
    return {name: _outcome(name, future, deadline, started) for name, future in futures.items()}


def run_leg(name: str, leg: Callable[[], T], *, deadline: float) -> Outcome[T]:
    """The outcome of a single leg, under the same rules."""
    return run_legs({name: leg}, deadline=deadline)[name]


def _timed(leg: Callable[[], T]) -> Outcome[T]:
    started = time.perf_counter()
    try:
        value, error = leg(), None
    except Exception as failure:
        value, error = None, failure
    return Outcome(value, error, (time.perf_counter() - started) * 1000)


def _outcome(name: str, future: Future[Outcome[T]], deadline: float, started: float) -> Outcome[T]:
    if future.done():
        return future.result()
    future.cancel()
    late = Timeout(f"the {name} leg gave no answer within {deadline:g} s")
    return Outcome(None, late, (time.perf_counter() - started) * 1000)
