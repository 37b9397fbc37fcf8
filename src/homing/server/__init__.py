"""Homing for other programs: over HTTP, stdio and MCP. Names are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from homing.mcp.server import mcp_server
    from homing.server.application import create_app

__all__ = ["create_app", "mcp_server"]

_HOMES = {"create_app": "homing.server.application", "mcp_server": "homing.mcp.server"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'homing.server' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
