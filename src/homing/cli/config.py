"""`homing config`: what is set, and where."""

from __future__ import annotations

import typer

from homing.cli.options import Json
from homing.cli.output import console, print_json

app = typer.Typer(help="Settings.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Settings: what holds, and where it was set."""


@app.command()
def show(json: Json = False) -> None:
    """Print every setting and where it came from. Keys are masked."""
    from homing.config import load

    rows = list(load().rows())
    if json:
        print_json([{"key": key, "value": value, "source": source} for key, value, source in rows])
        return
    from rich.table import Table

    table = Table("key", "value", "from")
    for row in rows:
        table.add_row(*row)
    console().print(table)
