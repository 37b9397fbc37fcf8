"""A channel: its name, what it takes, what it gives, and who answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from homing.app import Homing
from homing.channels.message import Request, Response
from homing.channels.work import Work

Answer = Callable[[Homing, Any, Work], Response]
Lane = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Channel:
    """One door. `answer` gets a request that was checked, and raises only HomingError; `writes` is whether it changes
    anything.

    Requests in one `lane` are worked on one after another, in the order they came: two saves of a document must not
    overtake each other. A `long` one reports progress, can be canceled half-way, and has a lane of its own.
    """

    name: str
    request: type[Request]
    response: type[Response]
    answer: Answer
    writes: bool = False
    lane: Lane | None = None
    long: bool = False

    @property
    def description(self) -> str:
        """What it is for, in a sentence or two."""
        return " ".join((self.request.__doc__ or "").split())
