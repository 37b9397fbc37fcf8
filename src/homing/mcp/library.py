"""What is asked of the `mcp` library beyond its public names; every such name of it is here and nowhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

Handler = Callable[[ServerRequestContext[Any, Any], Any], Awaitable[Any]]


def add_handler(server: MCPServer[Any], method: str, params: type[Any], handler: Handler) -> None:
    """Answer a method of the protocol that the server has no decorator for, or none that says whose request it is."""
    server._lowlevel_server.add_request_handler(method, params, handler)


def connection_of(ctx: ServerRequestContext[Any, Any]) -> Connection:
    """The connection that a request came by; it has `state`, and an `exit_stack` for its end."""
    return ctx.session._connection


async def run_stdio(server: MCPServer[Any]) -> None:
    """Serve standard input and output, and say that the list of resources may change."""
    handlers = server._lowlevel_server
    options = handlers.create_initialization_options(NotificationOptions(resources_changed=True))
    async with stdio_server() as (read, write):
        await handlers.run(read, write, options)
