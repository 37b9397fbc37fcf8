"""Homing for agents: the tools and resources of a data folder over the Model Context Protocol."""

from homing.mcp.access import Access
from homing.mcp.server import mcp_server

__all__ = ["Access", "mcp_server"]
