"""`homing serve`: everything over HTTP, and the page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from homing.cli.options import Data, Json
from homing.cli.output import console, print_json
from homing.errors import InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from homing.app import Homing


def run_server(
    host: Annotated[str | None, typer.Option(help="Address to listen on; beyond loopback it needs a token.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    log: Annotated[str, typer.Option(help="json, text, none, or auto: text on a terminal, else json.")] = "auto",
    log_queries: Annotated[bool, typer.Option("--log-queries", help="Also log what people search for.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Serve the page, the API and MCP until Ctrl+C. Then finish what is under way and embed what still waits.

    With --json the address is printed as JSON once requests are answered.
    """
    from homing.app import open_app
    from homing.config import load

    with server_extra():
        from homing.server.running import serve

        _log(log)
    given: dict[str, Any] = {"host": host, "port": port, "log_queries": log_queries or None}
    settings = load(overrides={"server": {key: one for key, one in given.items() if one is not None}}).settings
    with open_app(data or settings.data, settings=settings) as app:

        def started(address: str) -> None:
            if json:
                print_json(_facts(app, address))
                sys.stdout.flush()
            else:
                _greet(app, address)
            if open_page:
                import webbrowser

                webbrowser.open(address)

        serve(app, on_start=started)
        if not json:
            console(stderr=True).print("Stopping: embedding what still waits …")


@contextmanager
def server_extra() -> Iterator[None]:
    """Says which extra to install where a library of the server is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{error.name} is not installed; install it with: pip install 'homing[server]'", details={"extra": "server"}
        ) from error


def _log(wanted: str) -> None:
    import logging

    from homing.server.log_lines import log_to_stderr

    if wanted not in ("auto", "json", "text", "none"):
        raise InvalidArgument(f"no log format {wanted!r}; known: auto, json, text, none")
    as_json = wanted == "json" or (wanted == "auto" and not sys.stderr.isatty())
    log_to_stderr(as_json=as_json, level=logging.CRITICAL if wanted == "none" else logging.INFO)


def _facts(app: Homing, address: str) -> dict[str, Any]:
    from homing.server.tokens import Tokens

    return {
        "address": address,
        "data": str(app.settings.data.absolute()),
        "model": app.models.identity(),
        "tokens": Tokens.exist(app.existing_database),
    }


def _greet(app: Homing, address: str) -> None:
    from rich.panel import Panel
    from rich.table import Table

    facts = _facts(app, address)
    needs: Literal["a token"] | str = "a token" if facts["tokens"] else "nothing: only this machine reaches it"
    rows = {
        "page": address,
        "API": f"{address}openapi.json",
        "MCP": f"{address}mcp",
        "data": facts["data"],
        "model": facts["model"] or "none (keywords only)",
        "needs": needs,
    }
    out = console()
    if not out.is_terminal:
        for name, value in rows.items():
            out.print(f"{name}: {value}", markup=False)
        return
    table = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        style = "bold cyan" if name == "page" else ""
        table.add_row(f"[dim]{name}[/dim]", f"[{style}]{value}[/{style}]" if style else value)
    out.print(Panel(table, title="[bold]Homing[/bold] 归航", subtitle="[dim]Ctrl+C stops[/dim]", expand=False))
