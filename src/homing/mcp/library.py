"""The names of the `mcp` package that this part uses; says which extra to install where it is missing."""

from __future__ import annotations

from homing.errors import MissingExtra

try:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
    from mcp.server.mcpserver.resources import ResourceSecurity
    from mcp.server.mcpserver.tools import Tool as LibraryTool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        INTERNAL_ERROR,
        INVALID_PARAMS,
        Annotations,
        CallToolResult,
        Resource,
        TextContent,
        ToolAnnotations,
    )
except ModuleNotFoundError as error:
    raise MissingExtra(
        "mcp is not installed; install it with: pip install 'homing[mcp]'", details={"extra": "mcp"}
    ) from error

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "Annotations",
    "ArgModelBase",
    "CallNext",
    "CallToolResult",
    "Context",
    "FuncMetadata",
    "HandlerResult",
    "LibraryTool",
    "MCPError",
    "MCPServer",
    "Resource",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceSecurity",
    "ServerRequestContext",
    "TextContent",
    "ToolAnnotations",
    "TransportSecuritySettings",
]
