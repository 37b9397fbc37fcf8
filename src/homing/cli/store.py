"""`homing store`: what is done to a store as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli.options import Json
from homing.cli.output import console, print_json, progress

app = typer.Typer(help="Move data between engines.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Move data between engines."""


@app.command()
def copy(
    from_url: Annotated[str, typer.Argument(help="The store to read, e.g. sqlite:///data/homing.db.")],
    to_url: Annotated[str, typer.Argument(help="The empty store to fill, e.g. lance://data/lance or postgresql://…")],
    json: Json = False,
) -> None:
    """Copy everything to another store and compare the two.

    Interrupted, it goes on where it stopped. Models and their providers are not copied: configure them anew.
    """
    from contextlib import closing

    from homing.database.copying import Table
    from homing.moving import move
    from homing.server import tokens
    from homing.stores import open_store

    with (
        closing(open_store(from_url, existing=True)) as source,
        closing(open_store(to_url)) as target,
        progress("Copying", quiet=json) as step,
    ):
        done = move(source, target, tables=[Table(tokens.COMPONENT, tokens.STEPS, "tokens", "id")], progress=step)
    if json:
        print_json(done)
        return
    resumed = f", {done.resumed} of them by an earlier run" if done.resumed else ""
    console().print(
        f"{done.records} records in {done.collections} collections copied{resumed}; compared, checksum {done.checksum}"
    )
