"""An operation: something that a user can have done, described once for every surface that it is on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from pydantic import BaseModel

from homing.app import OWNER, Homing
from homing.errors import Canceled
from homing.on_search import OnSearch
from homing.operations.models import Output
from homing.progress import never

Scope = Literal["read", "write", "admin"]
"""What a caller must be allowed; each includes the ones before it."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
Report = Callable[[int, int], None]
"""Tells how much of how much is done. Raises where the work was cancelled, so that it ends there."""


def unreported(done: int, total: int) -> None:
    """For those who do not look."""


@dataclass(frozen=True, slots=True)
class Call:
    """Who asks, and for what: `app` is the user's own, `owner` that of the server, which has what all users share.

    `switch` brings all texts of everybody to the default model. `canceled` says whether the caller took the request
    back. `patience` is how many seconds the caller waits for a new text to get its vector.
    """

    app: Homing
    owner: Homing
    user: str = OWNER
    scope: Scope = "admin"
    report: Report = unreported
    switch: Callable[[Report], int] | None = None
    canceled: Callable[[], bool] = never
    patience: float = 0.0

    def may(self, scope: Scope) -> bool:
        """Whether the caller's scope reaches that far."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def go_on(self) -> None:
        """Raises Canceled where the caller took the request back."""
        if self.canceled():
            raise Canceled("the request was canceled; what was done until then stays done")


@dataclass(frozen=True, slots=True)
class Job:
    """How an operation that takes long is done beside its caller: one of a kind and subject at a time.

    `shared` is work on what all users have. `check` refuses before the job begins what can be refused then.
    """

    kind: str
    subject: Callable[[Any], str]
    shared: bool = False
    check: Callable[[Call, Any], None] = field(default=lambda call, asked: None)


@dataclass(frozen=True, slots=True)
class Tool:
    """An operation as a tool of agents (MCP); a model reads `description` to decide whether to call it."""

    name: str
    description: str
    destructive: bool = False


Pace = Literal["quick", "waiting", "long"]
"""How a request spends its time: at work for a moment, waiting for somebody else, or at work for minutes."""


@dataclass(frozen=True, slots=True)
class Channel:
    """An operation as a channel of desktop apps.

    Requests in one `lane` are begun one after another, in the order they came: two saves of a document must not
    overtake each other. What only `waits` for others keeps none of the threads that work.
    """

    name: str
    lane: Callable[[Any], str] | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation and the surfaces it is on.

    `http` is its method and path; fields of its input may be in the path. `tool` is how agents know it, `channel` how
    desktop apps do. `may_miss` says that it raises NotFound where what it is asked about is not there.
    """

    name: str
    run: Callable[[Call, Any], BaseModel]
    input: type[BaseModel]
    output: type[BaseModel]
    scope: Scope
    tag: str
    http: str | None = None
    status: int = 200
    job: Job | None = None
    tool: Tool | None = None
    channel: Channel | None = None
    may_miss: bool = False

    @property
    def description(self) -> str:
        """What it does, for people."""
        return inspect.getdoc(self.run) or ""

    def answer(self, call: Call, asked: Any, on_search: OnSearch) -> BaseModel:
        """What it answers; `on_search` is told of every search that was answered with it."""
        found = self.run(call, asked)
        if isinstance(found, Output):
            for search in found.searches():
                on_search(*search)
        return found

    @property
    def pace(self) -> Pace:
        """How a request on its channel spends its time. What is not quick can be taken back half-way."""
        if self.job is not None:
            return "long"
        return "waiting" if self.channel is not None and self.channel.waits else "quick"


F = TypeVar("F", bound=Callable[[Call, Any], BaseModel])

OPERATIONS: dict[str, Operation] = {}
"""Every operation by name; the modules of this package add theirs."""


def operation(
    scope: Scope,
    *,
    http: str | None = None,
    tag: str,
    status: int = 200,
    job: Job | None = None,
    tool: Tool | None = None,
    channel: Channel | None = None,
    may_miss: bool = False,
) -> Callable[[F], F]:
    """Make a function of a call and an input an operation, under the function's name."""

    def register(run: F) -> F:
        hints = get_type_hints(run)
        (_, asked), *_ = [one for one in hints.items() if one[0] not in ("call", "return")]
        name = run.__name__
        OPERATIONS[name] = Operation(
            name, run, asked, hints["return"], scope, tag, http, status, job, tool, channel, may_miss
        )
        return run

    return register
