"""`homing providers`: accounts with model providers. A key is never taken from the command line, and never shown."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from homing.cli.calls import Data, Json, group, opened
from homing.cli.output import print_json, print_table, say

app = group("Accounts with model providers.")


@app.command(name="list")
def list_providers(data: Data = None, json: Json = False) -> None:
    """List the providers. Keys are not shown.

    The list says whether there is a key, or which environment variable holds it.
    """
    from homing.cli.reports import ProviderOut

    with opened(data) as app:
        providers = [ProviderOut.of(one, key=_shown(one.api_key.reveal())) for one in app.models.providers()]
    if json:
        print_json(providers)
        return
    rows = [(one.name, one.type, one.base_url, one.key, "✓" if one.enabled else "") for one in providers]
    print_table(("name", "type", "address", "key", "enabled"), rows)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A name of your choice.")],
    kind: Annotated[str, typer.Option("--type", help="openai, gemini, ollama, dashscope, local and others.")],
    base_url: Annotated[str, typer.Option(help="The address of the API, if it is not the usual one.")] = "",
    key_variable: Annotated[
        str, typer.Option("--key-variable", help="Read the key from this environment variable whenever it is used.")
    ] = "",
    no_key: Annotated[bool, typer.Option("--no-key", help="The provider needs no key.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Add a provider. It asks for the key, or reads it from standard input.

    Instead of a key, ${VARIABLE} may be entered: the key is then read from that environment variable.
    """
    from homing.cli.reports import ProviderAdded

    key = f"${{{key_variable}}}" if key_variable else "" if no_key or kind in ("local", "ollama") else _ask_key(name)
    with opened(data) as app:
        app.models.config.create_provider(name, kind, api_key=key, base_url=base_url)
    if json:
        print_json(ProviderAdded(name=name, type=kind, key=_shown(key)))
    else:
        say(f"added {name}; add one of its models with `homing models add MODEL --provider {name}`")


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="The name of the provider.")], data: Data = None, json: Json = False
) -> None:
    """Remove a provider that has no models."""
    from homing.cli.reports import ProviderRemoved

    with opened(data) as app:
        app.models.config.delete_provider(name)
    print_json(ProviderRemoved(name=name)) if json else say(f"removed {name}")


def _ask_key(name: str) -> str:
    if sys.stdin.isatty():
        key: str = typer.prompt(f"API key of {name}", hide_input=True, default="", show_default=False, err=True)
        return key
    return sys.stdin.readline().strip()


def _shown(key: str) -> str:
    if not key:
        return ""
    return key if key.startswith("${") and key.endswith("}") else "set"
