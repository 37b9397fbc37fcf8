"""`homing models default`, `status`, `rollback`, `discard`: change the model in use while people search."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.models import Provider
from homing.cli.opened import opened
from homing.cli.options import Data, Json
from homing.cli.output import console, print_json, progress
from homing.errors import ConfigError

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.models.switch import SwitchStatus

LOG = "switch.log"


def change_default(
    name: Annotated[str | None, typer.Argument(help="The model to use; without one, finish what was begun.")] = None,
    provider: Provider = None,
    background: Annotated[bool, typer.Option("--background", help="Return at once; embed in a process apart.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Use a model from now on. What another one embedded is embedded again; searches go on meanwhile.

    Killed half-way, the same command goes on where it stopped.
    """
    with opened(data) as app:
        if name is not None:
            if app.models.explicit:
                raise ConfigError(
                    "the settings name the model (embedding.provider, provider_id or model in homing.toml or the "
                    "environment) and win over the default; change it there, then run `homing models default`"
                )
            app.switch.make_default(app.models.find(name, provider).model)
        if background:
            _start_apart(app)
        else:
            _run(app, quiet=json)
        _report(app.switch.status(), json=json)


def show_status(data: Data = None, json: Json = False) -> None:
    """Show which model answers, and how far a change has come."""
    with opened(data) as app:
        _report(app.switch.status(), json=json)


def roll_back(data: Data = None, json: Json = False) -> None:
    """Use the model before the latest change again. Its vectors were kept, so this takes no time."""
    with opened(data) as app:
        app.switch.rollback()
        # What was written since the change has no vector of that model yet.
        _run(app, quiet=json)
        _report(app.switch.status(), json=json)


def discard_kept(data: Data = None, json: Json = False) -> None:
    """Let go of the vectors that were kept for a rollback."""
    with opened(data) as app:
        count = app.switch.discard()
    if json:
        print_json({"discarded": count})
    else:
        console().print(f"{count} vectors were let go")


def _run(app: Homing, *, quiet: bool) -> None:
    with progress("Embedding again", quiet=quiet) as step:
        app.switch.run(step)


def _start_apart(app: Homing) -> None:
    command = [sys.executable, "-c", "from homing.cli.main import run; run()", "models", "default", "--json"]
    with (app.settings.data / LOG).open("ab") as log:
        subprocess.Popen(
            [*command, "--data", str(app.settings.data.absolute())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _report(status: SwitchStatus, *, json: bool) -> None:
    if json:
        print_json(_plain(status))
        return
    from rich.table import Table

    out = console()
    state = status.state
    out.print(f"model in use: {status.default or 'none (keywords only)'}")
    if state is not None and not status.finished:
        left = "" if state.seconds_left is None else f", about {state.seconds_left:.0f} s left"
        doing = f"running, {state.done} of {state.total}{left}" if state.running else "stopped"
        out.print(f"changing to {state.target}: {doing}{'; ' + state.error if state.error else ''}")
        if not state.running:
            out.print("finish it with `homing models default`")
    if not status.collections:
        return
    table = Table("collection", "records", "answers", "also held")
    for one in status.collections:
        held = ", ".join(f"{other.model} ({other.embedded})" for other in one.models if not other.served)
        answers = next((other.model for other in one.models if other.served), "")
        table.add_row(one.collection, str(one.records), answers, held)
    out.print(table)


def _plain(status: SwitchStatus) -> dict[str, Any]:
    return asdict(status)
