"""`homing providers`: accounts with model providers. A key is never taken from the command line, and never shown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Answer, answers, group
from homing.cli.lazy import reports
from homing.cli.output import print_table, say

if TYPE_CHECKING:
    from homing.cli.reports import ProviderOut
    from homing.models import LLMProvider
    from homing.operations import Call

app = group("providers", "Accounts with model providers.")


@app.command(name="list")
@answers("homing.cli.reports:ProviderOut[]")
def list_providers(call: Call) -> Answer:
    """List the providers. Keys are not shown.

    The list says whether there is a key, or which environment variable holds it.
    """
    found = [_out(one) for one in call.app.models.providers()]
    rows = [(one.name, one.type, one.base_url, one.key, "✓" if one.enabled else "") for one in found]
    return Answer(found, lambda: print_table(("name", "type", "address", "key", "enabled"), rows))


@app.command()
@answers("homing.cli.reports:ProviderOut")
def add(
    call: Call,
    name: Annotated[str, typer.Argument(help="A name of your choice.")],
    kind: Annotated[str, typer.Option("--type", help="openai, gemini, ollama, dashscope, local and others.")],
    base_url: Annotated[str, typer.Option(help="The address of the API, if it is not the usual one.")] = "",
    key_variable: Annotated[
        str, typer.Option("--key-variable", help="Read the key from this environment variable whenever it is used.")
    ] = "",
    no_key: Annotated[bool, typer.Option("--no-key", help="The provider needs no key.")] = False,
) -> Answer:
    """Add a provider. It asks for the key, or reads it from standard input.

    Instead of a key, ${VARIABLE} may be entered: the key is then read from that environment variable.
    """
    key = f"${{{key_variable}}}" if key_variable else "" if no_key or kind in ("local", "ollama") else _ask_key(name)
    added = _out(call.app.models.config.create_provider(name, kind, api_key=key, base_url=base_url))
    hint = f"add one of its models with `homing models add MODEL --provider {name}`"
    return Answer(added, lambda: say(f"added {name}; {hint}"))


@app.command()
@answers("homing.cli.reports:ProviderOut")
def remove(call: Call, name: Annotated[str, typer.Argument(help="The name of the provider.")]) -> Answer:
    """Remove a provider that has no models."""
    config = call.app.models.config
    gone = _out(config.get_provider(name))
    config.delete_provider(name)
    return Answer(gone, lambda: say(f"removed {name}"))


def _ask_key(name: str) -> str:
    if sys.stdin.isatty():
        key: str = typer.prompt(f"API key of {name}", hide_input=True, default="", show_default=False, err=True)
        return key
    return sys.stdin.readline().strip()


def _out(provider: LLMProvider) -> ProviderOut:
    key = provider.api_key.reveal()
    refers = key.startswith("${") and key.endswith("}")
    return reports.ProviderOut.of(provider, key=key if refers or not key else "set")
