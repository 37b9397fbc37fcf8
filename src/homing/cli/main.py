"""The `homing` command: puts the groups together and turns errors into messages and exit codes."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from homing.cli import (
    calibrate,
    config,
    demo,
    devices,
    docs,
    doctor,
    embed,
    evaluate,
    ipc,
    knowledge,
    mcp,
    memory,
    models,
    postgres,
    providers,
    search,
    serve,
    skills,
    store,
    switching,
    tokens,
)
from homing.cli.output import exit_code, print_error, write_anything
from homing.errors import HomingError

app = typer.Typer(
    name="homing",
    help="One retrieval engine for agents and apps: bilingual (中文 / English), offline by default.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="search")(search.search_folder)
app.command(name="embed")(embed.embed_texts)
app.command(name="eval")(evaluate.evaluate)
app.command(name="doctor")(doctor.run_doctor)
app.command(name="demo")(demo.run_demo)
app.command(name="serve")(serve.run_server)
models.app.command(name="default")(switching.change_default)
models.app.command(name="status")(switching.show_status)
models.app.command(name="rollback")(switching.roll_back)
models.app.command(name="discard")(switching.discard_kept)
models.app.command(name="calibrate")(calibrate.calibrate_model)
app.add_typer(skills.app, name="skills")
app.add_typer(devices.app, name="devices")
app.add_typer(memory.app, name="memory")
app.add_typer(docs.app, name="docs")
app.add_typer(knowledge.app, name="knowledge")
app.add_typer(models.app, name="models")
app.add_typer(providers.app, name="providers")
app.add_typer(store.app, name="store")
app.add_typer(postgres.app, name="postgres")
app.add_typer(ipc.app, name="ipc")
app.add_typer(mcp.app, name="mcp")
app.add_typer(tokens.app, name="tokens")
app.add_typer(config.app, name="config")


def print_version(asked: bool) -> None:
    """Print the version and stop, where it was asked for."""
    if asked:
        from homing import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what is going on, on standard error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """One retrieval engine for agents and apps: bilingual (中文 / English), offline by default."""
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, format="%(levelname)s %(name)s: %(message)s")


def run() -> None:
    """The entry point of the `homing` command."""
    write_anything()
    try:
        app(prog_name="homing")
    except HomingError as error:
        print_error(error, as_json="--json" in sys.argv)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(130)
