"""Spans for OpenTelemetry, where its API is installed; nothing at all where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

try:
    from opentelemetry import trace
except ModuleNotFoundError:
    trace = None  # type: ignore[assignment]


class Noted(Protocol):
    """What can be said about a piece of work while it runs."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Add one fact."""


class _Unheard:
    def set_attribute(self, key: str, value: Any) -> None:
        """Nobody listens."""


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[Noted]:
    """A span around a block, a child of the current one; what the block raises is recorded on it and passed on."""
    if trace is None:
        yield _Unheard()
        return
    with trace.get_tracer("homing").start_as_current_span(name) as current:
        for key, value in attributes.items():
            current.set_attribute(f"homing.{key}", value)
        yield current
