"""`homing mcp`: serve agents over standard input and output, and print how a client is told of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json

if TYPE_CHECKING:
    from homing.mcp.clients import Local

app = typer.Typer(help="Serve agents over the Model Context Protocol (MCP).", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def serve(context: typer.Context, data: Data = None) -> None:
    """Serve agents over the Model Context Protocol (MCP).

    Skills, documents, memory and devices as tools, over standard input and output: a client starts this command.
    `homing serve` offers the same at /mcp.
    """
    if context.invoked_subcommand is not None:
        return
    from homing.mcp.stdio import serve as serve_stdio

    if sys.stdin.isatty():
        note = (
            "Waiting for an MCP client on standard input; `homing mcp install` prints how to set one up. Ctrl-C ends."
        )
        console(stderr=True).print(note)
    with opened(data) as homing:
        serve_stdio(homing)


@app.command()
def install(
    client: Annotated[str | None, typer.Argument(help="The client; without one, every client that is known.")] = None,
    url: Annotated[str, typer.Option("--url", help="A running `homing serve`, e.g. http://127.0.0.1:8765/mcp.")] = "",
    token: Annotated[bool, typer.Option("--token", help="That server asks for a token.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print the configuration block for a client. It changes no file."""
    from homing.config import load
    from homing.mcp.clients import Remote, block_for, blocks

    folder = (data or load().settings.data).expanduser().absolute()
    server = Remote(url, token) if url else started(folder)
    printed = [block_for(client, server)] if client else blocks(server)
    if json:
        print_json(printed)
        return
    from rich.text import Text

    out = console()
    for block in printed:
        out.print(Text.assemble((block.client, "bold"), f"  {block.file}"))
        out.print(Text(block.text, "cyan"))
        out.print()


def started(folder: Path) -> Local:
    """How a client starts this very program: by a full path, because a client has its own idea of PATH."""
    from homing.mcp.clients import Local

    program = Path(sys.executable).with_name("homing")
    arguments = ("mcp", "--data", str(folder))
    if program.is_file():
        return Local(str(program), arguments)
    return Local(sys.executable, ("-c", "from homing.cli.main import run; run()", *arguments))
