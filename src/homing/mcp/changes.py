"""Tells clients what changes: resources that they follow, and what a call of theirs logged.

A folder may be changed by anybody: another process, an editor, a scan. While somebody listens, what is there is
compared with what was there a moment ago. Clients of the protocol since 2026 listen by `subscriptions/listen`, earlier
ones by `resources/subscribe` and by having listed resources.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, get_args

import anyio
import anyio.to_thread
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp_types import (
    LOG_LEVEL_META_KEY,
    EmptyResult,
    LoggingLevel,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from homing.errors import HomingError

log = logging.getLogger(__name__)

INTERVAL = 2.0
"""Seconds between two looks at what is there, while somebody listens."""
LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_PYTHON_LEVELS: Mapping[int, LoggingLevel] = {10: "debug", 20: "info", 30: "warning", 40: "error", 50: "critical"}

Versions = Mapping[str, Any]
"""What tells one state of a resource from another, by address."""


class Changes(InMemorySubscriptionBus):
    """Who follows which resources of one data folder."""

    def __init__(self, versions: Callable[[], Versions], interval: float) -> None:
        super().__init__()
        self._versions = versions
        self._interval = interval
        self._followed: dict[Connection, tuple[ServerSession, set[str]]] = {}
        self._streams: set[object] = set()
        self._seen: Versions | None = None

    def add_to(self, server: MCPServer[Any]) -> None:
        """Take the subscriptions of clients that speak an earlier version."""
        handlers = server._lowlevel_server
        handlers.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        handlers.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """A stream of events; while there is one, somebody looks."""
        stop = super().subscribe(listener)
        token = object()
        self._streams.add(token)

        def end() -> None:
            self._streams.discard(token)
            stop()

        return end

    async def listed(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Who lists resources is told when the list changes."""
        if ctx.method == "resources/list":
            self._known(ctx)
        return await call_next(ctx)

    @asynccontextmanager
    async def watching(self, server: MCPServer[Any]) -> AsyncIterator[dict[str, Any]]:
        """Looks for changes as long as the server runs."""
        async with anyio.create_task_group() as beside:
            beside.start_soon(self._watch)
            yield {}
            beside.cancel_scope.cancel()

    async def _watch(self) -> None:
        while True:
            try:
                await self._look()
            except HomingError as error:
                log.warning("changes of resources cannot be seen now: %s", error)
            await anyio.sleep(self._interval)

    async def _look(self) -> None:
        if not self._streams and not self._followed:
            self._seen = None
            return
        now = await anyio.to_thread.run_sync(self._versions)
        before, self._seen = self._seen, now
        if before is None or before == now:
            return
        changed = {uri for uri in before.keys() | now.keys() if before.get(uri) != now.get(uri)}
        if before.keys() != now.keys():
            await self.publish(ResourcesListChanged())
        for uri in sorted(changed):
            await self.publish(ResourceUpdated(uri=uri))
        for session, uris in list(self._followed.values()):
            if before.keys() != now.keys():
                await session.send_resource_list_changed()
            for uri in sorted(changed & uris):
                await session.send_resource_updated(uri)

    async def _subscribe(self, ctx: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        self._known(ctx).add(params.uri)
        return EmptyResult()

    async def _unsubscribe(self, ctx: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._known(ctx).discard(params.uri)
        return EmptyResult()

    def _known(self, ctx: ServerRequestContext[Any, Any]) -> set[str]:
        """The addresses that a connection follows, which it does until it ends."""
        connection = ctx.session._connection
        if not connection.has_standalone_channel:
            return set()
        if connection not in self._followed:
            self._followed[connection] = (ctx.session, set())
            connection.exit_stack.callback(self._followed.pop, connection, None)
        return self._followed[connection][1]


class CallLog(logging.Handler):
    """What one call logs, for the client that made it and wants to know."""

    _of_this_call: ContextVar[CallLog | None] = ContextVar("of_this_call", default=None)

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what this call said; others log at the same time."""
        if self._of_this_call.get() is self:
            self.records.append(record)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear what is logged in this block, in its threads too."""
        token = self._of_this_call.set(self)
        logger = logging.getLogger("homing")
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
            self._of_this_call.reset(token)


async def set_level(ctx: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
    """From which level on a client of an earlier version is sent what its calls log."""
    ctx.session._connection.state["homing.log_level"] = params.level
    return EmptyResult()


async def logged(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Sends a client what its call logged, from the level on that it asked for; nothing where it asked for none."""
    wanted = ctx.session._connection.state.get("homing.log_level") or (ctx.meta or {}).get(LOG_LEVEL_META_KEY)
    if ctx.method != "tools/call" or wanted not in LEVELS:
        return await call_next(ctx)
    heard = CallLog()
    with heard.listening():
        answer = await call_next(ctx)
    for record in heard.records:
        level = _PYTHON_LEVELS.get(min(record.levelno // 10 * 10, 50), "debug")
        if LEVELS.index(level) >= LEVELS.index(wanted):
            with warnings.catch_warnings():
                # Logging is on its way out of the protocol; who asks for it is served.
                warnings.simplefilter("ignore")
                await ctx.session.send_log_message(
                    level, record.getMessage(), logger=record.name, related_request_id=ctx.request_id
                )
    return answer
