"""Homing for agents: the tools and resources of a data folder over the Model Context Protocol."""

from homing.errors import MissingExtra

try:
    import mcp  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtra(
        "mcp is not installed; install it with: pip install 'homing[mcp]'", details={"extra": "mcp"}
    ) from error

from homing.mcp.server import mcp_server
from homing.mcp.tools import Access

__all__ = ["Access", "mcp_server"]
