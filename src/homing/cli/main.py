"""The `homing` command: puts the groups together and turns errors into messages and exit codes."""

from __future__ import annotations

import gc
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.language import reads_chinese, text
from homing.cli.output import exit_code, print_error, write_anything
from homing.errors import HomingError, InvalidArgument

if TYPE_CHECKING:
    app: typer.Typer

ABOUT = "One retrieval engine for agents and apps: bilingual (中文 / English), offline by default."
UsageError: Any = typer.BadParameter.__mro__[1]
"""What is raised where the command line is wrong; Typer has no public name for it."""
COMMANDS = {
    "search": "search:search",
    "embed": "search:embed_texts",
    "eval": "evaluate:evaluate",
    "doctor": "upkeep:run_doctor",
    "where": "upkeep:where",
    "repair": "upkeep:run_repair",
    "bulk": "bulk:run_bulk",
    "backup": "upkeep:run_backup",
    "restore": "upkeep:run_restore",
    "demo": "demo:run_demo",
    "serve": "servers:run_server",
    "worker": "worker:run_worker",
    "docs": "guide:show_guide",
    "skills": "skills:app",
    "devices": "devices:app",
    "memory": "memory:app",
    "documents": "documents:app",
    "knowledge": "knowledge:app",
    "models": "models:app",
    "providers": "models:providers",
    "store": "upkeep:store",
    "postgres": "upkeep:postgres",
    "ipc": "servers:ipc",
    "mcp": "servers:mcp",
    "tokens": "servers:tokens",
    "config": "upkeep:config",
}
"""Where each command and each group of commands is, in the order of the help."""
SERVERS = frozenset({"serve", "worker", "ipc", "mcp"})
OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""A command that ends soon leaves few cycles; to look for them as often as Python does is a tenth of its start."""


def shell(only: str | None = None) -> typer.Typer:
    """All commands, or one command or group of them: to build the others takes as long as to start without them."""
    made = typer.Typer(
        name="homing",
        help=ABOUT,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(help=ABOUT)(options)
    for name, place in COMMANDS.items():
        if only in (None, name):
            module, _, attribute = place.partition(":")
            found = getattr(import_module(f"homing.cli.{module}"), attribute)
            if isinstance(found, typer.Typer):
                made.add_typer(found)
            else:
                made.command(name=name)(found)
    return made


def __getattr__(name: str) -> Any:
    """`app` is all of the shell, built when it is first asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, shell())


def print_version(asked: bool) -> None:
    """Print the version and stop, where it was asked for."""
    if asked:
        from homing import __version__

        typer.echo(__version__)
        raise typer.Exit


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
    asked = next((one for one in sys.argv[1:] if not one.startswith("-")), None)
    if asked not in SERVERS:
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        # To look for plugins, pydantic reads about every package that is installed.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        # Made with numpy, the threads of its library spin for a while, whether or not there is a product for them.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    write_anything()
    as_json = "--json" in sys.argv
    try:
        sys.exit(shell(asked if asked in COMMANDS else None)(prog_name="homing", standalone_mode=False) or 0)
    except HomingError as error:
        print_error(error, as_json=as_json)
        sys.exit(exit_code(error))
    except UsageError as error:
        _print_usage_error(error, as_json=as_json)
        sys.exit(error.exit_code)
    except typer.Abort:
        typer.echo(f"\n{text('Cancelled.')}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _print_usage_error(error: Any, *, as_json: bool) -> None:
    """What is wrong with the command line, in the language of the user."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    if error.ctx is not None and error.ctx.command_path == "homing docs":
        meant = f"homing documents {shlex.join(sys.argv[2:])}"
        error = UsageError(text("`homing docs` shows the guide; for documents write: {meant}", meant=meant))
    if as_json:
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
            return f"没有 {name} 这个选项。{_perhaps(sorted(error.possibilities or ()))}"
        case "BadOptionUsage":
            return f"选项 {name} 后面少了它的值。"
        case "BadParameter":
            kind = "应为整数" if "integer" in message else "应为数字" if "number" in message else message
            return f"{name} 的值不对：{kind}。"
    if message.startswith("No such command"):
        name, *close = message.split("'")[1::2]
        return f"没有 {name} 这个命令。{_perhaps(close)}"
    return f"多余的参数：{message.rpartition('(')[2].rstrip(')')}。" if "extra argument" in message else message


def _perhaps(names: Sequence[str]) -> str:
    return f"是不是想用 {'、'.join(names)}？" if names else ""
