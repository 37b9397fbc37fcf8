"""The configuration blocks of common MCP clients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """How a client writes its servers down: under `section`, with fields of its own for one that it starts and for one
    that runs; `token` is how it refers to the variable, `None` for `running` that it reaches no URL.
    """

    title: str
    file: str
    section: str = "mcpServers"
    started: Mapping[str, str] = field(default_factory=dict)
    running: Mapping[str, str] | None = field(default_factory=dict)
    url: str = "url"
    token: str = f"${{{TOKEN_VARIABLE}}}"
    language: str = "json"

    def write(self, server: Local | Remote) -> str:
        """The block for a server."""
        if isinstance(server, Local):
            fields: dict[str, Any] = {**self.started, "command": server.command, "args": list(server.arguments)}
        else:
            fields = {**(self.running or {}), self.url: server.url}
        asked: dict[str, Any] = {}
        if isinstance(server, Remote) and server.token:
            if self.language == "toml":
                fields["bearer_token_env_var"] = TOKEN_VARIABLE
            else:
                fields["headers"] = {"Authorization": f"Bearer {self.token}"}
            if self.token == ASKED:
                prompt = {"type": "promptString", "id": "homing-token", "description": "Token of Homing"}
                asked = {"inputs": [{**prompt, "password": True}]}
        if self.language == "toml":
            # A JSON string or list of strings is one of TOML, too.
            rows = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
            return "\n".join([f"[{self.section}.{SERVER}]", *rows])
        return json.dumps({self.section: {SERVER: fields}, **asked}, ensure_ascii=False, indent=2)


def block_for(client: str, server: Local | Remote) -> Block:
    """The block of one client. Raises NotFound with the known ones; InvalidArgument where it cannot reach a URL."""
    if client not in CLIENTS:
        raise NotFound(f"no client named {client!r}; known: {', '.join(CLIENTS)}")
    known = CLIENTS[client]
    if isinstance(server, Remote) and known.running is None:
        raise InvalidArgument(f"{known.title} starts its servers itself; leave out --url")
    return Block(client, known.file, known.language, known.write(server))


def blocks(server: Local | Remote) -> list[Block]:
    """The blocks of every client that can reach the server."""
    return [
        block_for(name, server) for name, one in CLIENTS.items() if isinstance(server, Local) or one.running is not None
    ]


ASKED = "${input:homing-token}"
STDIO, HTTP = {"type": "stdio"}, {"type": "http"}
CLIENTS: Mapping[str, _Client] = {
    "claude-desktop": _Client(
        "Claude Desktop", "claude_desktop_config.json (Settings → Developer → Edit Config)", running=None
    ),
    "claude-code": _Client(
        "Claude Code", ".mcp.json in the project, or ~/.claude.json for every project", started=STDIO, running=HTTP
    ),
    "cursor": _Client(
        "Cursor",
        ".cursor/mcp.json in the project, or ~/.cursor/mcp.json for every project",
        token=f"${{env:{TOKEN_VARIABLE}}}",
    ),
    "vscode": _Client(
        "VS Code",
        ".vscode/mcp.json in the workspace, or the user's mcp.json",
        section="servers",
        started=STDIO,
        running=HTTP,
        token=ASKED,
    ),
    "codex": _Client("Codex", "~/.codex/config.toml", section="mcp_servers", language="toml"),
    "gemini": _Client(
        "Gemini CLI",
        ".gemini/settings.json in the project, or ~/.gemini/settings.json for every project",
        url="httpUrl",
        token=f"${TOKEN_VARIABLE}",
    ),
}
"""Every client that a block can be printed for, by the name that the command takes."""
