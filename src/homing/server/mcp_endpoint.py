"""`/mcp`: the tools of `homing.mcp` for the caller of each request."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request

from homing.mcp.http import McpEndpoint
from homing.mcp.tools import Access
from homing.server.access import Caller


def mcp_endpoint(stopping: Callable[[], bool]) -> McpEndpoint:
    """The ASGI application to route `/mcp` to; the server's own guard has looked at host, origin and token by then."""
    return McpEndpoint(_access, loopback_only=False, stopping=stopping)


def _access(request: Request) -> Access:
    caller: Caller = request.state.caller
    return Access(caller.app, scope=caller.scope, on_search=caller.service.metrics.on_search)
