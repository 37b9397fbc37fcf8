"""MCP over standard input and output."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from homing.errors import HomingError
from homing.mcp.library import run_stdio
from homing.mcp.server import mcp_server

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from homing.app import Homing

log = logging.getLogger(__name__)

STDOUT, STDERR = 1, 2


def serve(app: Homing) -> None:
    """Answer requests on standard input until it ends, or until the process is told to end.

    Only answers go to standard output: whatever else writes there, in Python or below it, is led to standard error,
    from the first line of this function until the process ends.
    """
    sys.stdout.flush()
    wire = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    server = mcp_server(app)
    _embed_what_waits(app)
    sys.stdout.flush()
    # The transport takes standard output for itself before anything else runs, and leads the rest to standard error.
    os.dup2(wire, STDOUT)
    try:
        anyio.run(_serve, server, app)
    finally:
        # What was printed meanwhile may still wait in Python's buffer, and is written when the process ends.
        os.dup2(STDERR, STDOUT)
        os.close(wire)


async def _serve(server: MCPServer[Any], app: Homing) -> None:
    async with anyio.create_task_group() as beside:
        beside.start_soon(anyio.to_thread.run_sync, _warm, app)
        beside.start_soon(_end_when_told, app)
        await run_stdio(server)
        beside.cancel_scope.cancel()


async def _end_when_told(app: Homing) -> None:
    """End at Ctrl-C or SIGTERM. Whoever reads standard input cannot be woken, so nobody waits for that thread."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            await anyio.to_thread.run_sync(app.close)
            sys.stderr.flush()
            os._exit(128 + number)


def _embed_what_waits(app: Homing) -> None:
    try:
        app.engine.start()
    except HomingError as error:
        log.warning("nothing is embedded in the background: %s", error)


def _warm(app: Homing) -> None:
    """Load the model while the client introduces itself, so that the first call does not wait for it."""
    try:
        if app.embedder is not None:
            app.embedder.embed([" "], kind="query")
    except HomingError as error:
        log.warning("the embedding model is not available, words will answer: %s", error)
