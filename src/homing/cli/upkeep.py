"""`homing doctor`, `config`, `store` and `postgres`: check the installation, see its settings, move its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli.calls import Data, Json, group
from homing.cli.output import console, counted, print_json, print_table, progress, say

if TYPE_CHECKING:
    from homing.config import Settings
    from homing.database.postgres.server import LocalServer, ServerStatus

config = group("Settings, and where they were set.")
store = group("Move data from one store to another.")
postgres = group("A PostgreSQL server with pgvector, for development.")

MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red"), "skip": ("–", "dim")}


def run_doctor(
    live: Annotated[bool, typer.Option("--live", help="Also ask a model behind an API, which may cost money.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Check that everything works.

    Writes and finds test texts in both languages, checks the data folder, and says how to fix what is broken. If
    something is broken, the exit code is 1.
    """
    from homing.operations.doctor import diagnosis

    found = diagnosis(_settings(data), live=live)
    if json:
        print_json(found)
    else:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, padding=(0, 1))
        for finding in found.findings:
            mark, style = MARKS[finding.status]
            mend = Text(f"\n→ {finding.mend}", "cyan") if finding.mend else Text()
            table.add_row(Text(mark, style), finding.check, Text.assemble(finding.detail, mend))
        console().print(table)
    if not found.healthy:
        raise typer.Exit(1)


@config.command()
def show(json: Json = False) -> None:
    """Print every setting and where it was set. Keys are masked."""
    from homing.config import load

    rows = list(load().rows())
    if json:
        from homing.cli.reports import Setting

        print_json([Setting(key=key, value=value, source=source) for key, value, source in rows])
    else:
        print_table(("key", "value", "set in"), rows)


@store.command()
def copy(
    from_url: Annotated[str, typer.Argument(help="The store to read, e.g. sqlite:///data/homing.db.")],
    to_url: Annotated[str, typer.Argument(help="The empty store to fill, e.g. lance://data/lance or postgresql://…")],
    json: Json = False,
) -> None:
    """Copy everything to another store, and compare the two.

    If it is interrupted, run it again: it continues where it stopped. Models and providers are not copied; add them
    again.
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
    say(
        f"{counted(done.records, 'record')} in {counted(done.collections, 'collection')} copied{resumed}; "
        f"both stores have the checksum {done.checksum}"
    )


@postgres.command()
def start(
    data: Data = None,
    port: Annotated[
        int | None, typer.Option(help="The port on 127.0.0.1; without it, a free one.", min=1, max=65535)
    ] = None,
    json: Json = False,
) -> None:
    """Start the server and print its address. It keeps its data in the data folder."""
    _print_status(_server(data).start(port=port), as_json=json)


@postgres.command()
def stop(
    data: Data = None,
    delete: Annotated[bool, typer.Option("--delete", help="Also delete all of its data.")] = False,
    json: Json = False,
) -> None:
    """Stop the server. Its data is kept."""
    from homing.cli.reports import ServerStopped

    server = _server(data)
    stopped = server.stop()
    if delete:
        server.remove()
    if json:
        print_json(ServerStopped(stopped=stopped, deleted=delete))
    else:
        say(("stopped" if stopped else "it was not running") + (", data deleted" if delete else ""))


@postgres.command()
def status(data: Data = None, json: Json = False) -> None:
    """Show whether the server is running, and at which address."""
    _print_status(_server(data).status(), as_json=json)


def _settings(data: Path | None) -> Settings:
    from homing.config import load

    return load(overrides={} if data is None else {"data": str(data)}).settings


def _server(data: Path | None) -> LocalServer:
    from homing.database.postgres.server import LocalServer

    return LocalServer(_settings(data).data / "postgres")


def _print_status(found: ServerStatus, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif found.running:
        say(f"running at {found.url}")
    else:
        say(f"not running in {found.folder}; start it with: homing postgres start")
