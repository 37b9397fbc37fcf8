"""`homing providers`: accounts with model providers. A key is never taken from the command line, and never shown."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json

app = typer.Typer(help="Accounts with model providers.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name of your choice.")]


@app.callback()
def group() -> None:
    """Accounts with model providers."""


@app.command(name="list")
def list_providers(data: Data = None, json: Json = False) -> None:
    """Show the providers that were added. Of a key only whether there is one, or which variable holds it."""
    with opened(data) as app:
        providers = app.models.providers()
        rows = [
            {
                "name": one.name,
                "type": one.type,
                "base_url": one.base_url,
                "key": _shown(one.api_key.reveal()),
                "enabled": one.enabled,
            }
            for one in providers
        ]
    if json:
        print_json(rows)
        return
    from rich.table import Table

    table = Table("name", "type", "address", "key", "enabled")
    for row in rows:
        table.add_row(*(str(row[key]) for key in ("name", "type", "base_url", "key")), "✓" if row["enabled"] else "")
    console().print(table)


@app.command()
def add(
    name: Name,
    kind: Annotated[str, typer.Option("--type", help="openai, gemini, ollama, dashscope, local …")],
    base_url: Annotated[str, typer.Option(help="Address of the API, where it is not the provider's own.")] = "",
    key_variable: Annotated[
        str, typer.Option("--key-variable", help="Read the key from this environment variable whenever it is used.")
    ] = "",
    no_key: Annotated[bool, typer.Option("--no-key", help="The provider needs no key.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Add a provider. The key is asked for, or read from standard input; it may be written ${VARIABLE}."""
    key = f"${{{key_variable}}}" if key_variable else "" if no_key or kind in ("local", "ollama") else _asked(name)
    with opened(data) as app:
        app.models.config.create_provider(name, kind, api_key=key, base_url=base_url)
    if json:
        print_json({"name": name, "type": kind, "key": _shown(key)})
    else:
        console().print(f"{name} was added; add one of its models with `homing models add MODEL --provider {name}`")


@app.command()
def remove(name: Name, data: Data = None, json: Json = False) -> None:
    """Remove a provider that no model belongs to."""
    with opened(data) as app:
        app.models.config.delete_provider(name)
    if json:
        print_json({"name": name})
    else:
        console().print(f"{name} was removed")


def _asked(name: str) -> str:
    if sys.stdin.isatty():
        asked: str = typer.prompt(f"API key of {name}", hide_input=True, default="", show_default=False, err=True)
        return asked
    return sys.stdin.readline().strip()


def _shown(key: str) -> str:
    if not key:
        return ""
    return key if key.startswith("${") and key.endswith("}") else "set"
