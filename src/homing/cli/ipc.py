"""`homing ipc`: serve the program that started us, over standard input and output."""

from __future__ import annotations

import logging
import os
from typing import Annotated

import typer

from homing.cli.options import Data
from homing.cli.output import console, print_json

log = logging.getLogger(__name__)

app = typer.Typer(help="Serve an editor or a desktop app (JSON-RPC over stdio).", invoke_without_command=True)


@app.callback()
def serve(
    context: typer.Context,
    data: Data = None,
    max_message: Annotated[int, typer.Option(help="Largest message that is taken, in MiB.", min=1, max=2048)] = 64,
    max_pending: Annotated[int, typer.Option(help="Requests that may be under way at once.", min=1)] = 256,
    grace: Annotated[float, typer.Option(help="Seconds that requests have to finish when asked to stop.", min=0)] = 10,
) -> None:
    """Serve an editor or a desktop app over standard input and output, with JSON-RPC 2.0, until the input ends."""
    if context.invoked_subcommand is not None:
        return
    from homing.ipc.stdio import own_stdio

    # Before anything else is imported: a library that prints would break the protocol.
    incoming, outgoing = own_stdio()
    from homing.channels import Channels
    from homing.cli.opened import opened
    from homing.ipc.stdio import serve_stdio
    from homing.ipc.tasks import MEBIBYTE, Limits

    limits = Limits(
        message_bytes=max_message * MEBIBYTE,
        pending=max_pending,
        pending_bytes=max(256, 2 * max_message) * MEBIBYTE,
        grace=grace,
    )
    if incoming.isatty():
        console(stderr=True).print(
            "Speaks JSON-RPC 2.0 with the program that starts it; `homing ipc schema` prints what it takes."
        )
    with opened(data) as homing:
        channels = Channels(homing)
        finished = serve_stdio(channels, incoming, outgoing, limits)
        channels.close()
    if not finished:
        log.error("ended with requests still under way; what they had written stays written")
    # Everything is written. Threads may still be at work, for nobody: one that hangs would keep the process alive for
    # ever, and native code that is in the middle of something aborts it when the interpreter goes away under it.
    logging.shutdown()
    os._exit(0 if finished else 1)


@app.command()
def schema() -> None:
    """Print the contract. Every channel has the JSON Schemas of its request and response."""
    from homing.channels import schemas

    print_json(schemas())
