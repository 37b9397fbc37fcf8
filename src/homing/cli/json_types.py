"""What each command prints with `--json`, as it says itself: `docs/cli.md` is written from this."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import GenericAlias
from typing import Any

import typer

from homing.cli.main import app
from homing.operations import OPERATIONS


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words, in order."""
    command = typer.main.get_command(app) if command is None else command
    for name, one in sorted(getattr(command, "commands", {}).items()):
        if not getattr(one, "commands", None) or getattr(one, "invoke_without_command", False):
            yield " ".join((*path, name)), one
        yield from commands(one, (*path, name))


def printed(command: Any) -> tuple[str, ...]:
    """What a command prints: names of operations, or of types."""
    found: tuple[str, ...] = getattr(command.callback, "prints", ())
    return found


def operations() -> dict[str, tuple[str, ...]]:
    """The commands that are operations, and which: what those answer is what these print."""
    found = {name: tuple(one for one in printed(command) if one in OPERATIONS) for name, command in commands()}
    return {name: called for name, called in found.items() if called}


def json_types() -> dict[str, list[Any]]:
    """The types that a command may print, by command; those without `--json` are left out."""
    found = {name: list(dict.fromkeys(map(_type, printed(command)))) for name, command in commands()}
    return {name: types for name, types in found.items() if types}


def _type(name: str) -> Any:
    if name in OPERATIONS:
        return OPERATIONS[name].output
    module, _, kind = name.removesuffix("[]").partition(":")
    found = getattr(import_module(module), kind)
    return GenericAlias(list, found) if name.endswith("[]") else found
