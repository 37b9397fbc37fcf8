"""The `homing` command: puts the groups together and turns errors into messages and exit codes."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer

from homing.cli import (
    bulk,
    demo,
    devices,
    documents,
    evaluate,
    guide,
    knowledge,
    memory,
    models,
    search,
    servers,
    skills,
    upkeep,
    worker,
)  # fmt: skip
from homing.cli.output import exit_code, print_error, reads_chinese, write_anything
from homing.errors import HomingError, InvalidArgument

ABOUT = "One retrieval engine for agents and apps: bilingual (中文 / English), offline by default."
UsageError: Any = typer.BadParameter.__mro__[1]
"""What is raised where the command line is wrong; Typer has no public name for it."""

app = typer.Typer(
    name="homing",
    help=ABOUT,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="search")(search.search)
app.command(name="embed")(search.embed_texts)
app.command(name="eval")(evaluate.evaluate)
app.command(name="doctor")(upkeep.run_doctor)
app.command(name="where")(upkeep.where)
app.command(name="repair")(upkeep.run_repair)
app.command(name="bulk")(bulk.run_bulk)
app.command(name="backup")(upkeep.run_backup)
app.command(name="restore")(upkeep.run_restore)
app.command(name="demo")(demo.run_demo)
app.command(name="serve")(servers.run_server)
app.command(name="worker")(worker.run_worker)
app.command(name="docs")(guide.show_guide)
for part in (skills, devices, memory, documents, knowledge, models):
    app.add_typer(part.app)
for group in (models.providers, upkeep.store, upkeep.postgres, servers.ipc, servers.mcp, servers.tokens, upkeep.config):
    app.add_typer(group)


def print_version(asked: bool) -> None:
    """Print the version and stop, where it was asked for."""
    if asked:
        from homing import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback(help=ABOUT)
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens, to standard error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, format="%(levelname)s %(name)s: %(message)s")


def run() -> None:
    """The entry point of the `homing` command."""
    write_anything()
    as_json = "--json" in sys.argv
    try:
        sys.exit(app(prog_name="homing", standalone_mode=False) or 0)
    except HomingError as error:
        print_error(error, as_json=as_json)
        sys.exit(exit_code(error))
    except UsageError as error:
        _print_usage_error(error, as_json=as_json)
        sys.exit(error.exit_code)
    except typer.Abort:
        typer.echo("\n已取消。" if reads_chinese() else "\nCancelled.", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _print_usage_error(error: Any, *, as_json: bool) -> None:
    """What is wrong with the command line, in the language of the user."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    elif as_json:
        print_error(InvalidArgument(error.format_message()), as_json=True)
    elif reads_chinese():
        if error.ctx is not None:
            usage = error.ctx.get_usage().removeprefix("Usage: ")
            typer.echo(f"用法：{usage}\n运行 {error.ctx.command_path} --help 查看帮助。\n", err=True)
        typer.echo(f"错误：{_in_chinese(error)}", err=True)
    else:
        error.show()


def _in_chinese(error: Any) -> str:
    name, parameter, message = getattr(error, "option_name", ""), getattr(error, "param", None), error.message
    if parameter is not None:
        is_option = parameter.param_type_name == "option"
        name = max(parameter.opts, key=len) if is_option else parameter.metavar or parameter.name
    match type(error).__name__:
        case "MissingParameter":
            return f"缺少{'选项' if name.startswith('-') else '参数'} {name}。"
        case "NoSuchOption":
            close = f"是不是想用 {'、'.join(sorted(error.possibilities))}？" if error.possibilities else ""
            return f"没有 {name} 这个选项。{close}"
        case "BadOptionUsage":
            return f"选项 {name} 后面少了它的值。"
        case "BadParameter":
            kind = "应为整数" if "integer" in message else "应为数字" if "number" in message else message
            return f"{name} 的值不对：{kind}。"
    if message.startswith("No such command"):
        return f"没有 {message.split(chr(39))[1]} 这个命令。"
    return f"多余的参数：{message.rpartition('(')[2].rstrip(')')}。" if "extra argument" in message else message
