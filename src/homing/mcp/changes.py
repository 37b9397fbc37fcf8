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
from typing import TYPE_CHECKING, Any, get_args

import anyio
import anyio.to_thread
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp_types import (
    LOG_LEVEL_META_KEY,
    EmptyResult,
    LoggingLevel,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from homing.errors import HomingError
from homing.mcp.library import add_handler, connection_of
from homing.mcp.resources import Versions, versions
from homing.mcp.tools import Access, AccessOf

if TYPE_CHECKING:
    from homing.app import Homing

log = logging.getLogger(__name__)

INTERVAL = 2.0
"""Seconds between two looks at what is there, while somebody listens."""
MAX_STREAMS = 64
"""Streams of news about one data folder."""
LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_PYTHON_LEVELS: Mapping[int, LoggingLevel] = {10: "debug", 20: "info", 30: "warning", 40: "error", 50: "critical"}


class _Folder(InMemorySubscriptionBus):
    """A data folder that somebody listens to: by streams, or by connections that outlive a request."""

    def __init__(self, access: Access) -> None:
        super().__init__()
        self.access = access
        self.listen = ListenHandler(self, max_subscriptions=MAX_STREAMS)
        self.streams = 0
        self.followed: dict[Connection, tuple[ServerSession, set[str]]] = {}
        self._seen: Versions | None = None

    async def look(self) -> None:
        """Tell everybody what is not as it was at the last look."""
        now = await anyio.to_thread.run_sync(versions, self.access)
        before, self._seen = self._seen, now
        if before is None or before == now:
            return
        changed = {uri for uri in before.keys() | now.keys() if before.get(uri) != now.get(uri)}
        if before.keys() != now.keys():
            await self.publish(ResourcesListChanged())
        for uri in sorted(changed):
            await self.publish(ResourceUpdated(uri=uri))
        for session, uris in list(self.followed.values()):
            if before.keys() != now.keys():
                await session.send_resource_list_changed()
            for uri in sorted(changed & uris):
                await session.send_resource_updated(uri)


class Changes:
    """Who follows which resources of which data folder; `access_of` says whose a request is."""

    def __init__(self, access_of: AccessOf, interval: float, stopping: Callable[[], bool]) -> None:
        self._access_of = access_of
        self._interval = interval
        self._stopping = stopping
        self._folders: dict[Homing, _Folder] = {}

    def add_to(self, server: MCPServer[Any], *, connected: bool) -> None:
        """Take subscriptions; with `connected` also those of clients that speak an earlier version, whose connections
        outlive a request.
        """
        add_handler(server, "subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        if connected:
            add_handler(server, "resources/subscribe", SubscribeRequestParams, self._subscribe)
            add_handler(server, "resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

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
            for folder in list(self._folders.values()):
                if self._stopping():
                    folder.listen.close()
                    continue
                try:
                    await folder.look()
                except HomingError as error:
                    log.warning("changes of resources cannot be seen now: %s", error)
            await anyio.sleep(self._interval)

    async def _listen(self, ctx: ServerRequestContext[Any, Any], params: Any) -> SubscriptionsListenResult:
        folder = self._folder(await anyio.to_thread.run_sync(self._access_of, ctx.request))
        folder.streams += 1
        try:
            return await folder.listen(ctx, params)
        finally:
            folder.streams -= 1
            self._leave(folder)

    async def _subscribe(self, ctx: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        self._known(ctx).add(params.uri)
        return EmptyResult()

    async def _unsubscribe(self, ctx: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._known(ctx).discard(params.uri)
        return EmptyResult()

    def _known(self, ctx: ServerRequestContext[Any, Any]) -> set[str]:
        """The addresses that a connection follows, which it does until it ends."""
        connection = connection_of(ctx)
        if not connection.has_standalone_channel:
            return set()
        folder = self._folder(self._access_of(ctx.request))
        if connection not in folder.followed:
            folder.followed[connection] = (ctx.session, set())
            connection.exit_stack.callback(self._end, folder, connection)
        return folder.followed[connection][1]

    def _folder(self, access: Access) -> _Folder:
        return self._folders.setdefault(access.app, _Folder(access))

    def _end(self, folder: _Folder, connection: Connection) -> None:
        folder.followed.pop(connection, None)
        self._leave(folder)

    def _leave(self, folder: _Folder) -> None:
        """Nobody looks at what nobody listens to."""
        if not folder.streams and not folder.followed and self._folders.get(folder.access.app) is folder:
            del self._folders[folder.access.app]


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
    connection_of(ctx).state["homing.log_level"] = params.level
    return EmptyResult()


async def logged(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Sends a client what its call logged, from the level on that it asked for; nothing where it asked for none."""
    wanted = connection_of(ctx).state.get("homing.log_level") or (ctx.meta or {}).get(LOG_LEVEL_META_KEY)
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
