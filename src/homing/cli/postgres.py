"""`homing postgres`: a PostgreSQL server of one's own, for development."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.options import Data, Json
from homing.cli.output import console, print_json

if TYPE_CHECKING:
    from homing.database.postgres.server import LocalServer, ServerStatus

app = typer.Typer(help="A PostgreSQL server with pgvector, for development.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """A PostgreSQL server with pgvector, for development."""


@app.command()
def start(
    data: Data = None,
    port: Annotated[
        int | None, typer.Option(help="Port on 127.0.0.1; a free one by default.", min=1, max=65535)
    ] = None,
    json: Json = False,
) -> None:
    """Start the server and print its address. It is made in the data folder where there is none."""
    _print(_server(data).start(port=port), as_json=json)


@app.command()
def stop(
    data: Data = None,
    delete: Annotated[bool, typer.Option("--delete", help="Also delete everything that it holds.")] = False,
    json: Json = False,
) -> None:
    """Stop the server; what it holds is kept."""
    server = _server(data)
    stopped = server.stop()
    if delete:
        server.remove()
    if json:
        print_json({"stopped": stopped, "deleted": delete})
    else:
        console().print(("stopped" if stopped else "was not running") + (", deleted" if delete else ""))


@app.command()
def status(data: Data = None, json: Json = False) -> None:
    """Say whether the server runs, and at which address."""
    _print(_server(data).status(), as_json=json)


def _server(data: Path | None) -> LocalServer:
    from homing.config import load
    from homing.database.postgres.server import LocalServer

    settings = load(overrides={} if data is None else {"data": str(data)}).settings
    return LocalServer(settings.data / "postgres")


def _print(found: ServerStatus, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif found.running:
        console().print(f"running at {found.url}", markup=False)
    else:
        console().print(f"not running in {found.folder}; start it with: homing postgres start")
