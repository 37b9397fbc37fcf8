"""`homing serve`, `ipc`, `mcp` and `tokens`: serve people, programs and agents, and say who may use the server."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli.calls import Answer, Data, Json, answers, calling, group, prints
from homing.cli.language import text
from homing.cli.lazy import reports
from homing.cli.output import console, note, print_json, print_table, say
from homing.errors import ConfigError, InvalidArgument

if TYPE_CHECKING:
    from homing.app import Homing
    from homing.cli.reports import Served
    from homing.mcp.clients import Block, Local
    from homing.operations import Call
    from homing.server.tokens import NewToken

log = logging.getLogger(__name__)

ipc = typer.Typer(name="ipc", invoke_without_command=True, rich_markup_mode=None)
mcp = typer.Typer(name="mcp", invoke_without_command=True, rich_markup_mode=None)
tokens = group("tokens", "Tokens: who may use the server, and for what.")

NO_TOKENS = "no tokens yet, so nobody but this machine is let in; make one with: homing tokens create"


@prints("homing.cli.reports:Served")
def run_server(
    host: Annotated[
        str | None, typer.Option(help="The address to listen on. Listening beyond this machine requires a token.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on; 0 picks a free one.", min=0, max=65535)
    ] = None,
    cert: Annotated[str | None, typer.Option(help="A certificate (PEM): serve HTTPS with it and --key.")] = None,
    key: Annotated[str | None, typer.Option(help="The private key (PEM) of the certificate.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="How many processes serve the same port and data; each uses one core.", min=1)
    ] = None,
    no_embed: Annotated[
        bool, typer.Option("--no-embed", help="PostgreSQL: leave embedding to `homing worker` processes.")
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the web page in a browser.")] = False,
    log: Annotated[str, typer.Option(help="json, text, none, or auto: text on a terminal, else json.")] = "auto",
    log_queries: Annotated[bool, typer.Option("--log-queries", help="Also log what people search for.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Serve the web page, the HTTP API and MCP until Ctrl-C.

    When it stops, it finishes the requests that are under way and embeds texts that still wait. With --json the
    address is printed as JSON as soon as the server answers.
    """
    from homing.app import open_app
    from homing.config import load
    from homing.database.lazy import is_postgres
    from homing.server.running import open_served, serve, serve_by_workers

    log_to_stderr(log)
    given: dict[str, Any] = {"host": host, "port": port, "log_queries": log_queries or None}
    given |= {"cert": cert, "key": key, "workers": workers, "embed": False if no_embed else None}
    settings = load(overrides={"server": {key: one for key, one in given.items() if one is not None}}).settings
    settings = settings if data is None else settings.model_copy(update={"data": data})
    if not settings.server.embed and not is_postgres(settings.database):
        raise ConfigError(
            text(
                "this server keeps everything in a folder, where nobody else embeds; leave --no-embed (server.embed) "
                "out, or set the store to PostgreSQL"
            )
        )

    def started(app: Homing, address: str) -> None:
        if json:
            print_json(_served(app, address))
            sys.stdout.flush()
        else:
            _greet(_served(app, address))
        if open_page:
            import webbrowser

            webbrowser.open(address)

    def started_workers(address: str) -> None:
        with open_app(settings=settings) as app:
            started(app, address)

    if settings.server.workers > 1:
        serve_by_workers(settings, on_start=started_workers)
        return
    with open_served(settings) as app:
        serve(app, on_start=partial(started, app))
        if not json and settings.server.embed:
            note("Stopping: embedding the texts that still wait …")


def log_to_stderr(wanted: str) -> None:
    """Write the log of a process that goes on as it was asked for. Raises InvalidArgument for what is no format."""
    from homing.server import log_lines

    if wanted not in ("auto", "json", "text", "none"):
        raise InvalidArgument(text("there is no log format {name!r}; known: auto, json, text, none", name=wanted))
    as_json = wanted == "json" or (wanted == "auto" and not sys.stderr.isatty())
    log_lines.log_to_stderr(as_json=as_json, level=logging.CRITICAL if wanted == "none" else logging.INFO)


def _served(app: Homing, address: str) -> Served:
    from homing.server.tokens import Tokens

    return reports.Served(
        address=address,
        data=str(app.settings.data.absolute()),
        model=app.models.identity(),
        tokens=Tokens.exist(app.existing_database),
    )


def _greet(served: Served) -> None:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    rows = {
        text("page"): served.address,
        "API": f"{served.address}docs",
        "MCP": f"{served.address}mcp",
        text("data"): served.data,
        text("model"): served.model or text("none (keywords only)"),
        text("access"): text("with a token" if served.tokens else "from this machine only, without a token"),
    }
    out = console()
    if not out.is_terminal:
        for name, value in rows.items():
            out.print(f"{name}: {value}", markup=False)
        return
    table = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        table.add_row(Text(name, "dim"), Text(value, "bold cyan" if value == served.address else ""))
    stops = Text(text("Ctrl-C stops it"), "dim")
    out.print(Panel(table, title="[bold]Homing[/bold] 归航", subtitle=stops, expand=False))


@ipc.callback()
def serve_ipc(
    context: typer.Context,
    data: Data = None,
    max_message: Annotated[int, typer.Option(help="The largest message to accept, in MiB.", min=1, max=2048)] = 64,
    max_pending: Annotated[int, typer.Option(help="How many requests may be under way at once.", min=1)] = 256,
    grace: Annotated[float, typer.Option(help="How many seconds requests get to finish when it stops.", min=0)] = 10,
) -> None:
    """Serve an editor or a desktop app over stdio.

    It speaks JSON-RPC 2.0 over standard input and output with the program that starts it, until the input ends.
    """
    if context.invoked_subcommand is not None:
        return
    from homing.ipc.stdio import own_stdio

    # Before anything else is imported: a library that prints would break the protocol.
    incoming, outgoing = own_stdio()
    from homing.channels import Channels
    from homing.ipc.stdio import serve_stdio
    from homing.ipc.tasks import MEBIBYTE, Limits

    limits = Limits(
        message_bytes=max_message * MEBIBYTE,
        pending=max_pending,
        pending_bytes=max(256, 2 * max_message) * MEBIBYTE,
        grace=grace,
    )
    if incoming.isatty():
        note("Waiting for JSON-RPC 2.0 requests on standard input; `homing ipc schema` prints what they look like.")
    with calling(data) as call:
        channels = Channels(call.app)
        finished = serve_stdio(channels, incoming, outgoing, limits)
        channels.close()
    if not finished:
        log.error("ended with requests still under way; what they had written stays written")
    # Everything is written. Threads may still be at work, for nobody: one that hangs would keep the process alive for
    # ever, and native code that is in the middle of something aborts it when the interpreter goes away under it.
    logging.shutdown()
    os._exit(0 if finished else 1)


@ipc.command()
def schema() -> None:
    """Print the JSON Schemas of every channel."""
    from homing.channels import schemas

    print_json(schemas())


@mcp.callback()
def serve_mcp(context: typer.Context, data: Data = None) -> None:
    """Serve agents over MCP.

    Offers skills, documents, memory and devices as tools of the Model Context Protocol (MCP), over standard input and
    output: the client of an agent starts this command. `homing serve` offers the same at /mcp.
    """
    if context.invoked_subcommand is not None:
        return
    from homing.mcp.stdio import serve as serve_stdio

    if sys.stdin.isatty():
        note("Waiting for an MCP client on standard input; `homing mcp install` sets one up. Ctrl-C stops.")
    with calling(data) as call:
        serve_stdio(call.app)


def _clients() -> list[str]:
    from homing.mcp.clients import CLIENTS

    return list(CLIENTS)


@mcp.command()
@answers("homing.mcp.clients:Block[]")
def install(
    client: Annotated[
        str | None,
        typer.Argument(help="The client; without it, all known clients are listed.", autocompletion=_clients),
    ] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print what would be written, and change no file.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option(help="Another file than the user's, e.g. .mcp.json of a project.", dir_okay=False)
    ] = None,
    url: Annotated[
        str, typer.Option("--url", help="Use a running `homing serve`, e.g. http://127.0.0.1:8765/mcp.")
    ] = "",
    token: Annotated[bool, typer.Option("--token", help="That server asks for a token.")] = False,
    data: Data = None,
) -> Answer:
    """Write Homing into the configuration of a client. What else is in the file stays."""
    from homing.config import load
    from homing.mcp import clients

    folder = (data or load().settings.data).absolute()
    server = clients.Remote(url, token) if url else started(folder)
    if client is None:
        found = clients.blocks(server)
        return Answer(found, lambda: _list_clients(found))
    block = (clients.block_for if only_print else clients.install)(client, server, file)

    def show() -> None:
        from rich.text import Text

        if only_print:
            console().print(Text.assemble((block.file, "bold"), "\n", (block.text, "cyan")))
        elif block.changed:
            say("{one.title} is set up in {one.file}; restart {one.title}", one=block)
        else:
            say("{one.title} is set up already, in {one.file}", one=block)

    return Answer([block], show)


def _list_clients(found: Sequence[Block]) -> None:
    home = str(Path.home())
    rows = [
        (
            one.client,
            one.title,
            "✓" if one.installed else one.serves and text("for {place}", place=one.serves.replace(home, "~", 1)),
            one.file.replace(home, "~", 1),
        )
        for one in found
    ]
    print_table(("name", "client", "set up", "file"), rows, whole=("name",))
    say("homing mcp install NAME sets one up; with --print it only shows what it would write")


def started(folder: Path) -> Local:
    """How a client starts this very program: by a full path, because a client has its own idea of PATH."""
    from homing.mcp.clients import Local

    program = Path(sys.executable).with_name("homing")
    arguments = ("mcp", "--data", str(folder))
    if program.is_file():
        return Local(str(program), arguments)
    return Local(sys.executable, ("-c", "from homing.cli.main import run; run()", *arguments))


@tokens.command()
@answers("homing.cli.reports:TokenCreated")
def create(
    call: Call,
    user: Annotated[str, typer.Option(help="Whose data it gives access to; `owner` owns the data folder.")] = "owner",
    scope: Annotated[str, typer.Option(help="read, write, or admin (also skills and models).")] = "write",
    purpose: Annotated[str, typer.Option("--note", help="What the token is for.")] = "",
    expires: Annotated[str, typer.Option(help="How long it is valid: 12h, 30d, 52w; empty means forever.")] = "",
) -> Answer:
    """Create a token and show it once. From then on, the server requires one."""
    from homing.operations.operation import SCOPES
    from homing.server.tokens import Tokens

    reach = next((one for one in SCOPES if one == scope), None)
    if reach is None:
        raise InvalidArgument(text("there is no scope {name!r}; known: {all}", name=scope, all=", ".join(SCOPES)))
    made = Tokens(call.app.database).create(user, reach, purpose, seconds=_seconds(expires))
    return _created(made)


@tokens.command()
@answers("homing.cli.reports:TokenCreated")
def rotate(
    call: Call, token_id: Annotated[str, typer.Argument(help="The id that `list` shows.", metavar="ID")]
) -> Answer:
    """Give a token a new secret, and its full time again.

    The new secret is shown once, and the old one is worthless from the next request on.
    """
    from homing.server.tokens import Tokens

    return _created(Tokens(call.app.database).rotate(token_id))


def _created(made: NewToken) -> Answer:
    def show() -> None:
        say("{secret}", secret=made.secret)
        note(
            "The token is not shown again. Send it as `Authorization: Bearer …`; revoke it with "
            "`homing tokens revoke {id}`.",
            id=made.token.id,
        )

    one = made.token
    shown = reports.TokenCreated(
        token=made.secret, id=one.id, user=one.user, scope=one.scope, note=one.note, expires=one.expires
    )
    return Answer(shown, show)


def _seconds(span: str) -> float | None:
    """The seconds of `12h`, `30d` or `52w`; None where nothing is said."""
    units = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
    if not span:
        return None
    if span[-1] not in units or not span[:-1].isdecimal() or not int(span[:-1]):
        raise InvalidArgument(text("{span!r} is no span of time; write it like 12h, 30d or 52w", span=span))
    return float(int(span[:-1]) * units[span[-1]])


@tokens.command(name="list")
@answers("homing.server.tokens:Token[]")
def list_tokens(call: Call) -> Answer:
    """List the tokens. The secrets themselves are not stored."""
    from homing.server.tokens import Tokens

    found = Tokens(call.app.database).all()

    def at(moment: float | None) -> str:
        return text("never") if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))

    rows = [(one.id, one.user, one.scope, at(one.created), at(one.expires), one.note) for one in found]
    headings = ("id", "user", "scope", "created", "expires", "note")
    return Answer(found, lambda: print_table(headings, rows, empty=NO_TOKENS))


@tokens.command()
@answers("homing.server.tokens:Token")
def revoke(
    call: Call, token_id: Annotated[str, typer.Argument(help="The id that `list` shows.", metavar="ID")]
) -> Answer:
    """Revoke a token, from the next request on."""
    from homing.server.tokens import Tokens

    gone = Tokens(call.app.database).revoke(token_id)
    return Answer(gone, lambda: say("revoked {one.id} of {one.user}", one=gone))
