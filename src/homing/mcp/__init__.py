"""Homing for agents: the tools and resources of a data folder over the Model Context Protocol."""

from homing.mcp.server import mcp_server
from homing.mcp.tools import Access

__all__ = ["Access", "mcp_server"]
