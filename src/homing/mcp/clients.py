"""The configuration blocks of common MCP clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homing.errors import InvalidArgument, NotFound

SERVER = "homing"
TOKEN_VARIABLE = "HOMING_TOKEN"
"""The variable that a client reads the token from; the token itself is never written into a block."""


@dataclass(frozen=True, slots=True)
class Local:
    """A server that the client starts: the command and its arguments."""

    command: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that runs already; `token` says whether it asks for one."""

    url: str
    token: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """What to write where, for one client."""

    client: str
    file: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class _Client:
    title: str
    file: str
    local: Callable[[Local], str]
    remote: Callable[[Remote], str] | None
    language: str = "json"


def block_for(client: str, server: Local | Remote) -> Block:
    """The block of one client. Raises NotFound with the known ones; InvalidArgument where it cannot reach a URL."""
    if client not in CLIENTS:
        raise NotFound(f"no client named {client!r}; known: {', '.join(CLIENTS)}")
    known = CLIENTS[client]
    if isinstance(server, Local):
        return Block(client, known.file, known.language, known.local(server))
    if known.remote is None:
        raise InvalidArgument(f"{known.title} starts its servers itself; leave out --url")
    return Block(client, known.file, known.language, known.remote(server))


def blocks(server: Local | Remote) -> list[Block]:
    """The blocks of every client that can reach the server."""
    return [block_for(name, server) for name, one in CLIENTS.items() if isinstance(server, Local) or one.remote]


def _started(server: Local) -> dict[str, Any]:
    return {"command": server.command, "args": list(server.arguments)}


def _below(section: str, fields: Mapping[str, Any]) -> str:
    return json.dumps({section: {SERVER: fields}}, ensure_ascii=False, indent=2)


def _headers(server: Remote, reference: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {reference}"}} if server.token else {}


def _vscode_remote(server: Remote) -> str:
    fields = {"type": "http", "url": server.url, **_headers(server, "${input:homing-token}")}
    asked = {"type": "promptString", "id": "homing-token", "description": "Token of Homing", "password": True}
    whole: dict[str, Any] = {"servers": {SERVER: fields}, **({"inputs": [asked]} if server.token else {})}
    return json.dumps(whole, ensure_ascii=False, indent=2)


def _toml(fields: Mapping[str, str | Sequence[str]]) -> str:
    # A JSON string or list of strings is one of TOML, too.
    rows = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return "\n".join([f"[mcp_servers.{SERVER}]", *rows])


def _codex_remote(server: Remote) -> str:
    return _toml({"url": server.url} | ({"bearer_token_env_var": TOKEN_VARIABLE} if server.token else {}))


CLIENTS: Mapping[str, _Client] = {
    "claude-desktop": _Client(
        "Claude Desktop",
        "claude_desktop_config.json (Settings → Developer → Edit Config)",
        lambda server: _below("mcpServers", _started(server)),
        None,
    ),
    "claude-code": _Client(
        "Claude Code",
        ".mcp.json in the project, or ~/.claude.json for every project",
        lambda server: _below("mcpServers", {"type": "stdio", **_started(server)}),
        lambda server: _below(
            "mcpServers", {"type": "http", "url": server.url, **_headers(server, f"${{{TOKEN_VARIABLE}}}")}
        ),
    ),
    "cursor": _Client(
        "Cursor",
        ".cursor/mcp.json in the project, or ~/.cursor/mcp.json for every project",
        lambda server: _below("mcpServers", _started(server)),
        lambda server: _below("mcpServers", {"url": server.url, **_headers(server, f"${{env:{TOKEN_VARIABLE}}}")}),
    ),
    "vscode": _Client(
        "VS Code",
        ".vscode/mcp.json in the workspace, or the user's mcp.json",
        lambda server: _below("servers", {"type": "stdio", **_started(server)}),
        _vscode_remote,
    ),
    "codex": _Client(
        "Codex",
        "~/.codex/config.toml",
        lambda server: _toml({"command": server.command, "args": list(server.arguments)}),
        _codex_remote,
        "toml",
    ),
    "gemini": _Client(
        "Gemini CLI",
        ".gemini/settings.json in the project, or ~/.gemini/settings.json for every project",
        lambda server: _below("mcpServers", _started(server)),
        lambda server: _below("mcpServers", {"httpUrl": server.url, **_headers(server, f"${TOKEN_VARIABLE}")}),
    ),
}
"""Every client that a block can be printed for, by the name that the command takes."""
