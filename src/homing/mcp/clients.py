"""Common MCP clients: where each keeps its servers, how it writes them down, and Homing among them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from homing.errors import InvalidArgument, NotFound
from homing.mcp.client_files import Entries, edit, holds, put_json, put_toml, there

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
    """The entry of Homing in the configuration file of a client; `installed` says whether the file holds it now, and
    `changed` whether it was written just now. `serves` is the data folder or the address that the file names now.
    """

    client: str
    title: str
    file: str
    language: str
    text: str
    installed: bool
    changed: bool = False
    serves: str = ""


Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Client:
    """How a client writes its servers down: in `file`, under `section`, with fields of its own for one that it starts
    and for one that runs. `token` is how it refers to the variable, or None where it reads no variables; `running` is
    None where it reaches no URL.
    """

    title: str
    file: str
    section: str = "mcpServers"
    started: Mapping[str, str] = field(default_factory=dict)
    running: Mapping[str, str] | None = field(default_factory=dict)
    url: str = "url"
    token: str | None = f"${{{TOKEN_VARIABLE}}}"
    language: str = "json"

    def place(self) -> Path:
        """The file of this user that every project of the client reads."""
        from platformdirs import user_config_path

        return Path(self.file.replace(CONFIG, str(user_config_path(roaming=True)))).expanduser()

    def entry(self, server: Local | Remote) -> Entry:
        """The fields of a server. Raises InvalidArgument where the client cannot have it."""
        if isinstance(server, Local):
            return {**self.started, "command": server.command, "args": list(server.arguments)}
        if self.running is None:
            raise InvalidArgument(f"{self.title} starts its servers itself; leave out --url")
        found: Entry = {**self.running, self.url: server.url}
        if server.token and self.token is None:
            raise InvalidArgument(
                f"{self.title} reads no variables; leave out --token, and add the header to its file yourself"
            )
        if server.token and self.language == "toml":
            found["bearer_token_env_var"] = TOKEN_VARIABLE
        elif server.token:
            found["headers"] = {"Authorization": f"Bearer {self.token}"}
        return found

    def entries(self, server: Local | Remote) -> Entries:
        """What to put where, made from what stands there: fields that people added themselves stay."""
        fields = self.entry(server)

        def joined(there: Any) -> Entry:
            kept = there if isinstance(there, dict) else {}
            return fields | {key: one for key, one in kept.items() if key not in OWN}

        def asked(there: Any) -> list[Any]:
            kept = there if isinstance(there, list) else []
            return kept if PROMPT in kept else [*kept, PROMPT]

        made: dict[tuple[str, ...], Callable[[Any], Any]] = {(self.section, SERVER): joined}
        if isinstance(server, Remote) and server.token and self.token == ASKED:
            made["inputs",] = asked
        return made


def block_for(client: str, server: Local | Remote, file: Path | None = None) -> Block:
    """The block of one client, for its own file or another. Nothing is written.

    Raises NotFound with the known ones; InvalidArgument where it cannot reach a URL.
    """
    known = _known(client)
    entries = known.entries(server)
    file = file or known.place()
    text = ""
    for path, make in entries.items():
        value = make(None)
        text = put_toml(text, path, value) if known.language == "toml" else put_json(text, path, value)
    installed = holds(file, known.language, entries)
    now = _served(there(file, known.language, (known.section, SERVER)))
    return Block(client, known.title, str(file), known.language, text.rstrip(), installed, serves=now)


def install(client: str, server: Local | Remote, file: Path | None = None) -> Block:
    """Write the block into the file of its client, or into another; everything else in it stays.

    Raises what `block_for` raises, and ConfigError where the file cannot be edited.
    """
    known = _known(client)
    entries = known.entries(server)
    changed = edit(file or known.place(), known.language, entries)
    return replace(block_for(client, server, file), changed=changed)


def blocks(server: Local | Remote) -> list[Block]:
    """The blocks of every client that can reach the server."""
    found = []
    for name in CLIENTS:
        with suppress(InvalidArgument):
            found.append(block_for(name, server))
    return found


def _served(entry: Any) -> str:
    if not isinstance(entry, dict):
        return ""
    arguments = [str(one) for one in entry.get("args", ())]
    if "--data" in arguments[:-1]:
        return arguments[arguments.index("--data") + 1]
    address = next((str(entry[name]) for name in ("url", "httpUrl", "serverUrl") if name in entry), "")
    return address or " ".join([str(entry.get("command", "")), *arguments])


def _known(client: str) -> _Client:
    if client not in CLIENTS:
        raise NotFound(f"no client named {client!r}; known: {', '.join(CLIENTS)}")
    return CLIENTS[client]


CONFIG = "{config}"
"""Where programs keep their settings: ~/.config, ~/Library/Application Support, %APPDATA%."""
ASKED = "${input:homing-token}"
PROMPT: Entry = {"type": "promptString", "id": "homing-token", "description": "Token of Homing", "password": True}
STDIO, HTTP = {"type": "stdio"}, {"type": "http"}
FROM_ENV = f"${{env:{TOKEN_VARIABLE}}}"
OWN = frozenset({"type", "command", "args", "url", "httpUrl", "serverUrl", "headers", "bearer_token_env_var"})
"""The fields of an entry that are Homing's to write."""
CLIENTS: Mapping[str, _Client] = {
    "claude-desktop": _Client("Claude Desktop", f"{CONFIG}/Claude/claude_desktop_config.json", running=None),
    "claude-code": _Client("Claude Code", "~/.claude.json", started=STDIO, running=HTTP),
    "cursor": _Client("Cursor", "~/.cursor/mcp.json", token=FROM_ENV),
    "vscode": _Client(
        "VS Code", f"{CONFIG}/Code/User/mcp.json", section="servers", started=STDIO, running=HTTP, token=ASKED
    ),
    "windsurf": _Client("Windsurf", "~/.codeium/windsurf/mcp_config.json", url="serverUrl", token=FROM_ENV),
    "zed": _Client(
        "Zed",
        f"{'~/.config' if sys.platform == 'darwin' else CONFIG}/zed/settings.json",
        section="context_servers",
        token=None,
    ),
    "codex": _Client("Codex CLI", "~/.codex/config.toml", section="mcp_servers", language="toml"),
    "gemini": _Client("Gemini CLI", "~/.gemini/settings.json", url="httpUrl", token=f"${TOKEN_VARIABLE}"),
}
"""Every client that can be set up, by the name that the command takes."""
