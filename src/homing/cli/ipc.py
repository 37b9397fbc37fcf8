"""`homing ipc`: serve the program that started us, over standard input and output."""

from __future__ import annotations

import logging
import os
from typing import Annotated

import typer

from homing.cli.options import Data
from homing.cli.output import print_json

log = logging.getLogger(__name__)

app = typer.Typer(help="Serve an editor or a desktop app over standard input and output.", invoke_without_command=True)


@app.callback()
def serve(
    context: typer.Context,
    data: Data = None,
    max_message: Annotated[int, typer.Option(help="Largest message that is taken, in MiB.", min=1, max=2048)] = 64,
    max_pending: Annotated[int, typer.Option(help="Requests that may be under way at once.", min=1)] = 256,
) -> None:
    """Serve an editor or a desktop app over standard input and output, with JSON-RPC 2.0, until the input ends."""
    if context.invoked_subcommand is not None:
        return
    from homing.ipc.stdio import own_stdio

    # Before anything else is imported: a library that prints would break the protocol.
    incoming, outgoing = own_stdio()
    from homing.channels import Channels
    from homing.cli.opened import opened
    from homing.ipc.limits import MEBIBYTE, Limits
    from homing.ipc.stdio import serve_stdio

    limits = Limits(
        message_bytes=max_message * MEBIBYTE,
        pending=max_pending,
        pending_bytes=max(256, 2 * max_message) * MEBIBYTE,
    )
    with opened(data) as homing:
        finished = serve_stdio(Channels(homing), incoming, outgoing, limits)
    if not finished:
        # A thread that hangs would keep the process alive for ever.
        log.error("ended with requests still under way; what they had written stays written")
        os._exit(1)


@app.command()
def schema() -> None:
    """Print the contract: every channel with the JSON Schemas of its request and response."""
    from homing.channels import schemas

    print_json(schemas())
