"""`homing models`: which embedding models there are."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli.options import Json
from homing.cli.output import console, print_json, progress

app = typer.Typer(help="Embedding models on this machine.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Embedding models on this machine."""


@app.command(name="list")
def list_models(json: Json = False) -> None:
    """Show the models that can be used without a network, and which one is."""
    from homing.config import load
    from homing.resolve import local_models

    settings = load().settings
    chosen = settings.embedding.model
    models = local_models(settings)
    if json:
        print_json([{"name": one.name, "dimensions": one.dimensions, "path": one.path} for one in models])
        return
    from rich.table import Table

    table = Table("model", "dimensions", "tokens", "in use", "path")
    for one in models:
        used = one.name == chosen or (not chosen and one == models[0])
        table.add_row(one.name, str(one.dimensions), str(one.max_tokens), "✓" if used else "", str(one.path))
    console().print(table)


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="Name of the model, e.g. all-MiniLM-L6-v2.")],
    json: Json = False,
) -> None:
    """Fetch a model by name and make it ready to run without torch; use it with embedding.model = NAME."""
    from homing.config import load
    from homing.embedders.pull import pull as fetch

    folder = load().settings.models.expanduser() / name
    with progress(f"Fetching {name}", quiet=json) as step:
        fetch(name, folder, progress=step)
    if json:
        print_json({"name": name, "path": folder})
    else:
        console().print(f'{name} is ready in {folder}; set embedding.model = "{name}" in homing.toml to use it')
