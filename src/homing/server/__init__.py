"""Homing for other programs: over HTTP, stdio and MCP."""
