"""MCP over streamable HTTP: an ASGI application for a server to route `/mcp` to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings

from homing.mcp.changes import INTERVAL
from homing.mcp.server import mcp_server
from homing.mcp.tools import AccessOf
from homing.progress import never

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

Message = MutableMapping[str, Any]


class McpEndpoint:
    """Answers MCP requests while it is `running`, which it can be once.

    Every request stands for itself (no sessions), so a token is asked for with each, and nothing is kept of one caller
    for the next; news of changes are the answer to a request that lasts, until `stopping` says that it is to end. With
    `loopback_only` a request must name this machine as its host, and a page that sends one must come from it: what
    protects a server without tokens from the pages that its user opens.
    """

    def __init__(
        self,
        access_of: AccessOf,
        *,
        loopback_only: bool = True,
        interval: float = INTERVAL,
        stopping: Callable[[], bool] = never,
    ) -> None:
        server = mcp_server(access_of, interval=interval, stopping=stopping)
        server.streamable_http_app(stateless_http=True, transport_security=_security(loopback_only))
        self._manager = server.session_manager

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Enter this in the lifespan of the server."""
        async with self._manager.run():
            yield

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        await self._manager.handle_request(scope, receive, send)


def _security(loopback_only: bool) -> TransportSecuritySettings:
    if not loopback_only:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    hosts = [spelling for host in LOOPBACK for spelling in (host, f"{host}:*")]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
