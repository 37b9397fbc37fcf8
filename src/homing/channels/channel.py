"""A channel: its name, what it takes, what it gives, and who answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from homing.app import Homing
from homing.channels.message import Request, Response
from homing.channels.work import Work

Later = Callable[[], Response]
Answer = Callable[[Homing, Any, Work], Response | Later]
Lane = Callable[[Any], str]
Pace = Literal["quick", "waiting", "long"]
"""How a request spends its time: at work for a moment, waiting for somebody else, or at work for minutes."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One door. `answer` gets a request that was checked, and raises only HomingError; `writes` is whether it changes
    anything.

    Requests in one `lane` are begun one after another, in the order they came: two saves of a document must not
    overtake each other. An answer that is a function has had its turn when it is returned; calling it may take its
    time. What is not `quick` can be taken back half-way; what is `long` reports progress.
    """

    name: str
    request: type[Request]
    response: type[Response]
    answer: Answer
    writes: bool = False
    lane: Lane | None = None
    pace: Pace = "quick"

    @property
    def description(self) -> str:
        """What it is for, in a sentence or two."""
        return " ".join((self.request.__doc__ or "").split())


def after_its_turn(answer: Callable[[Homing, Any, Work], Response]) -> Answer:
    """For what only has to come after what was sent before it, and keeps nobody behind it waiting."""
    return lambda app, request, work: partial(answer, app, request, work)
